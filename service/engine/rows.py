"""The kinds of rows, one for each way to choose tokens: what a row asks of a step, and what it does with the results.

A segment that is searched with a beam takes several slots, see `plugins.beam.search`; every other segment takes one.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

from service import plugins
from service.decode import Attention, Decode, DecodeStatus, FinishReason
from service.engine.repetition import FEWEST_TOKENS, goes_round
from service.engine.step import Asked, Force, Row, RunOutputs, Step


@dataclass(eq=False)
class Greedy(Row):
    """Takes the most probable tokens, and asks for nothing else."""

    eos_id: int
    asks = False

    def commit(self, slot: int, token: int | None, step: Step) -> Row:
        """Append the token, unless it is the end of the sentence."""
        decode = self.decode
        if token is None:
            decode.fail_alone(step.now_s)
        else:
            if decode.first_token_s is None:
                decode.first_token_s = step.now_s
            if token == self.eos_id:
                decode.finish(FinishReason.EOS, step.now_s)
            else:
                step.target_tokens += 1
                ids = decode.target_ids
                ids.append(token)
                if len(ids) >= decode.max_target_tokens:
                    decode.finish(FinishReason.LENGTH, step.now_s)
                elif len(ids) >= FEWEST_TOKENS and goes_round(decode, ids):
                    decode.finish(FinishReason.REPETITION, step.now_s)
        if decode.wants_deltas or decode.status is not DecodeStatus.DECODING:
            step.progressed.append(decode)
        return self

    def begin_with(self, token: int, attention: Attention | None, step: Step) -> None:
        """Append a token that does not count in the score."""
        decode = self.decode
        decode.target_ids.append(token)
        step.target_tokens += 1
        if attention is not None:
            decode.attention.append(attention)
        if decode.wants_deltas:
            step.progressed.append(decode)


@dataclass(eq=False)
class Detailed(Greedy):
    """Takes the most probable tokens, and notes their log-probabilities, or the attention of the decoder."""

    asks = True
    _attention: Attention | None = field(init=False, default=None)  # of the step

    def ask(self, slot: int, token: int, outputs: RunOutputs) -> tuple[int, Asked | None]:
        """Note the attention of the step, and ask for the log-probability of the token."""
        wanted = self.decode.decoding
        if wanted.wants_attention:
            self._attention = outputs.attention_of(slot)
        return token, Asked(1, (token,)) if wanted.wants_log_probability else None

    def commit(self, slot: int, token: int | None, step: Step) -> Row:
        """Note the details that were asked for, before another thread can see the end of the segment."""
        decode = self.decode
        if token is not None:
            if decode.decoding.wants_log_probability:
                if slot not in step.best:
                    return super().commit(slot, None, step)
                log_probability = step.best[slot].asked[0]
                decode.log_probability += log_probability
                if decode.scored_ids:
                    decode.token_log_probabilities.append(log_probability)
            if self._attention is not None and token != self.eos_id:
                decode.attention.append(self._attention)
        return super().commit(slot, token, step)


@dataclass(eq=False)
class Choosing(Detailed, ABC):
    """Takes other tokens than the most probable ones."""

    _is_forced: bool = field(init=False, default=False)  # whether another token than the decoder's was chosen

    @abstractmethod
    def choose(self, slot: int, outputs: RunOutputs) -> int:
        """Choose the next token."""

    def ask(self, slot: int, token: int, outputs: RunOutputs) -> tuple[int, Asked | None]:
        """Choose the token, and ask for its details as `Detailed` does."""
        chosen = self.choose(slot, outputs)
        self._is_forced = chosen != token
        return super().ask(slot, chosen, outputs)

    def commit(self, slot: int, token: int | None, step: Step) -> Row:
        """Make the decoder continue from the chosen token."""
        if token is not None and self._is_forced:
            step.edits.append(Force(slot, token))
        return super().commit(slot, token, step)


@dataclass(eq=False)
class Given(Choosing):
    """Takes the tokens of a translation that is to be scored."""

    given: Iterator[int]

    def choose(self, slot: int, outputs: RunOutputs) -> int:
        """Take the next token of the translation."""
        return next(self.given)


@dataclass(eq=False)
class Forced(Row):
    """Takes the `forced_ids` of a segment, at least one, before another row continues in the same slot."""

    row: Row
    _attention: Attention | None = field(init=False, default=None)  # of the step

    def ask(self, slot: int, token: int, outputs: RunOutputs) -> tuple[int, Asked | None]:
        """Note the attention of the step."""
        if self.decode.decoding.wants_attention:
            self._attention = outputs.attention_of(slot)
        return token, None

    def commit(self, slot: int, token: int | None, step: Step) -> Row:
        """Take the next forced token; the last of the forced tokens are the prefix of the translation."""
        decode = self.decode
        if token is None:
            decode.fail_alone(step.now_s)
            step.progressed.append(decode)
            return self
        forced, *rest = decode.forced_ids
        decode.forced_ids = tuple(rest)
        step.edits.append(Force(slot, forced))
        if len(rest) < len(decode.prefix_ids):
            self.row.begin_with(forced, self._attention, step)
        return self if rest else self.row

    def move(self, source: int, target: int) -> None:
        """Tell the row that continues in the slot."""
        self.row.move(source, target)


def new_row(decode: Decode, slot: int, eos_id: int) -> Row:
    """Make the row of a segment that begins in a slot."""
    row: Row
    wanted = decode.decoding
    if decode.slots > 1:
        row = plugins.needed(plugins.SEARCHES, "searches with no beam")(decode, slot, eos_id)
    elif decode.scored_ids:
        row = Given(decode, eos_id, iter(decode.scored_ids))
    elif wanted.sampling is not None:
        row = plugins.needed(plugins.DRAWS, "draws no tokens")(decode, eos_id, wanted.sampling)
    elif wanted.wants_log_probability or wanted.wants_attention:
        row = Detailed(decode, eos_id)
    else:
        row = Greedy(decode, eos_id)
    return Forced(decode, row) if decode.forced_ids else row
