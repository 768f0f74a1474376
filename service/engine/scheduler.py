"""Who goes next: decisions about slots, in plain Python, with no clock, array or thread of its own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.decode import Decode, DecodeStatus, FinishReason
from service.engine import stopping
from service.engine.choice import Choose, chooser_of
from service.engine.search import Search
from service.engine.selection import Selection

# The last active slot, whose segment moves to the slot that is released; the same where that is the last one.
Move = tuple[int, int]


@dataclass(frozen=True)
class StepPlan:
    """What one step will do.

    Attributes:
        moves: of the slots whose segments were cancelled or are past their deadline, see `Scheduler`.
        admitted: segments to encode, and then to give a slot.
        ended: segments that get no slot, or lose theirs.
    """

    moves: Sequence[Move] = ()
    admitted: Sequence[Decode] = ()
    ended: Sequence[Decode] = ()


@dataclass
class StepResult:
    """What one step did, and what is to be done with the slots, in this order.

    Attributes:
        copies: of slots whose hypotheses go on as others, see `SearchStep`.
        forks: of slots whose hypotheses become several, see `SearchStep`.
        forced: slots, before the moves, with the token that they go on from instead of the one that was chosen.
        moves: of the slots whose segments finished, see `Scheduler`.
        progressed: segments to tell somebody about.
        tokens: target tokens decoded.
        changes_slots: whether anything is to be done with the slots.
    """

    copies: list[tuple[int, int, int]] = field(default_factory=list)
    forks: list[int] = field(default_factory=list)
    forced: list[tuple[int, int]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    progressed: list[Decode] = field(default_factory=list)
    tokens: int = 0
    changes_slots: bool = False


class Scheduler:
    """The segments of one decode batch: `active[slot]` is in that slot, one that is searched in several.

    Slots are kept dense: where one is released, the last one's segment moves into it. These moves are told to the owner
    of the slots' rows, one for each released slot.

    Attributes:
        active: the segments, by slot.
        is_plain: whether every segment takes its most probable tokens, and asks for nothing else of a step.
    """

    def __init__(self, slots: int, eos_id: int, on_failure: Callable[[Exception], None] = lambda error: None) -> None:
        """Make slots without segments.

        Args:
            slots: how many.
            eos_id: the end-of-sentence id.
            on_failure: told of an error that ends one segment, and no other.
        """
        self._slots = slots
        self._eos_id = eos_id
        self._on_failure = on_failure
        self._scored: set[Decode] = set()  # those whose log-probabilities are added up token by token
        self._aligned: set[Decode] = set()  # those that want to know where the decoder looks
        self._searches: dict[Decode, Search] = {}
        self._choosers: dict[Decode, Choose] = {}
        self.active: list[Decode] = []
        self.is_plain = True

    @property
    def free(self) -> int:
        """Slots without a segment, and that no search will need."""
        return self._slots - len(self.active) - sum([search.reserved for search in self._searches.values()])

    def plan(self, arrivals: Sequence[Decode], now_s: float) -> StepPlan:
        """Drop cancelled and late segments, and admit the other arrivals."""
        dropped = dict.fromkeys([self.active[slot] for slot in expired_or_cancelled(self.active, now_s)])
        ended = [decode for decode in dropped if decode.end_early(now_s)]
        moves, admitted = list[Move](), list[Decode]()
        if ended:
            moves = self._release([slot for slot, decode in enumerate(self.active) if decode.finished])
        for decode in arrivals:
            if decode.end_early(now_s):
                ended.append(decode)
            else:
                decode.status = DecodeStatus.ENCODING
                decode.admitted_s = now_s
                admitted.append(decode)
        return StepPlan(moves, admitted, ended)

    def admit(self, decode: Decode) -> int:
        """Give a segment, whose memory is known, the next slot; returns the slot. It takes `decode.slots` free ones.

        Nothing has changed where that raises.
        """
        slot = len(self.active)
        if decode.slots > 1:
            self._searches[decode] = Search(decode, slot, self._eos_id)
        elif decode.scored_ids or decode.decoding.sampling is not None:
            self._choosers[decode] = chooser_of(decode)
        decode.status = DecodeStatus.DECODING
        self.active.append(decode)
        # A search knows the log-probabilities of its hypotheses.
        if decode.decoding.wants_log_probability and decode.slots == 1:
            self._scored.add(decode)
        if decode.decoding.wants_attention:
            self._aligned.add(decode)
        self._note_kinds()
        return slot

    def choose(
        self, ids: Sequence[int | None], logits_of: Callable[[int], NDArray[np.floating]]
    ) -> Mapping[int, int | None]:
        """Choose tokens where that is not left to the decoder graph; to be asked once a step.

        Args:
            ids: the most probable token of each slot; None where the decoder failed on it.
            logits_of: gives the logits of a slot, [vocabulary_size].

        Returns:
            The tokens by slot; None where the choice fails.
        """
        if not self._choosers:
            return {}
        return {
            slot: self._chosen(choose, partial(logits_of, slot))
            for slot, decode in enumerate(self.active)
            if (choose := self._choosers.get(decode)) is not None and ids[slot] is not None and not decode.forced_ids
        }

    def asked(self, tokens: Sequence[int | None]) -> tuple[dict[int, Sequence[int]], int]:
        """List what the next commit needs to know of the probabilities of a step.

        Args:
            tokens: the next one of each slot; None where the decoder failed on it.

        Returns:
            The slots whose best tokens are needed, each with tokens whose log-probabilities are needed besides; and how
            many of the best.
        """
        asked: dict[int, Sequence[int]] = {}
        count = 1
        if self._scored:
            for slot, (decode, token) in enumerate(zip(self.active, tokens, strict=True)):
                if token is not None and not decode.forced_ids and decode in self._scored:
                    asked[slot] = (token,)
        for decode, search in self._searches.items():
            if not decode.forced_ids:
                asked |= {slot: search.beam.asked_ids(lane) for lane, slot in enumerate(search.slots)}
                count = max(count, 2 * search.beam.size)
        return asked, count

    def aligned(self) -> list[int]:
        """List the slots whose segments want to know where the decoder looks."""
        if not self._aligned:
            return []
        return [slot for slot, decode in enumerate(self.active) if decode.decoding.wants_attention]

    def decoded(self) -> list[Sequence[int]]:
        """List the tokens that were decoded in each slot."""
        ids: list[Sequence[int]] = [decode.target_ids for decode in self.active]
        for search in self._searches.values():
            for slot, live in zip(search.slots, search.beam.live, strict=True):
                ids[slot] = live.ids
        return ids

    def commit(self, selection: Selection, now_s: float) -> StepResult:
        """Append each active segment's next token, and end those that are complete, or failed: these have None.

        Args:
            selection: the token of every slot, and what else was asked for.
            now_s: the time of the step.
        """
        result, done, searches = StepResult(), [], self._searches
        if selection.chosen:
            result.forced += [(slot, token) for slot, token in selection.chosen.items() if token is not None]
        tokens = self._note(selection) if self._scored or self._aligned else selection.tokens
        for slot, (decode, token) in enumerate(zip(self.active, tokens, strict=True)):
            if searches and decode in searches:
                continue
            if token is None:
                decode.fail_alone(now_s)
            elif decode.forced_ids:
                token, is_text = _next_forced(decode)
                result.forced.append((slot, token))
                if not is_text:
                    continue
                result.tokens += 1
                decode.target_ids.append(token)
            else:
                if decode.first_token_s is None:
                    decode.first_token_s = now_s
                if token == self._eos_id:
                    decode.finish(FinishReason.EOS, now_s)
                else:
                    result.tokens += 1
                    stopping.extend(decode, token, now_s)
            if decode.status is not DecodeStatus.DECODING:
                done.append(slot)
                result.progressed.append(decode)
            elif decode.wants_deltas:
                result.progressed.append(decode)
        for decode, search in searches.items():
            try:
                self._commit_search(decode, search, selection, now_s, result)
            except Exception as error:
                self._on_failure(error)
                decode.fail_alone(now_s)
            if decode.finished:
                done += [slot for slot, each in enumerate(self.active) if each is decode]
                result.progressed.append(decode)
        if done:
            result.moves = self._release(done)
        result.changes_slots = bool(done or result.forced or result.copies or result.forks)
        return result

    def _note(self, selection: Selection) -> Sequence[int | None]:
        """Note log-probabilities and attention of what is not searched, before its end shows to another thread.

        Returns:
            The tokens; None also where the search graph has failed on a segment that wants its log-probability.
        """
        tokens = list(selection.tokens)
        for slot, decode in enumerate(self.active):
            token = tokens[slot]
            if token is None or decode.slots > 1:
                continue
            if decode.forced_ids:
                is_text = len(decode.forced_ids) <= len(decode.prefix_ids)
            else:
                is_text = token != self._eos_id
                if decode in self._scored:
                    if slot not in selection.best:
                        tokens[slot] = None
                        continue
                    log_probability = selection.best[slot].asked[0]
                    decode.log_probability += log_probability
                    if decode.scored_ids:
                        decode.token_log_probabilities.append(log_probability)
            if is_text and decode.decoding.wants_attention:
                decode.attention.append(selection.attention[slot])
        return tokens

    def _chosen(self, choose: Choose, logits: Callable[[], NDArray[np.floating]]) -> int | None:
        try:
            return choose(logits)
        except Exception as error:
            self._on_failure(error)
            return None

    def _commit_search(
        self, decode: Decode, search: Search, selection: Selection, now_s: float, result: StepResult
    ) -> None:
        """Take a step of a search, which may take further slots."""
        best = [found for slot in search.slots if (found := selection.best.get(slot)) is not None]
        is_known = len(best) == len(search.slots) or decode.forced_ids
        if not is_known or None in [selection.tokens[slot] for slot in search.slots]:
            decode.fail_alone(now_s)
            return
        if decode.forced_ids:
            token, is_text = _next_forced(decode)
            result.forced.append((search.slots[0], token))
            if is_text:
                search.beam.begin_with(token, selection.attention.get(search.slots[0]))
            return
        if decode.first_token_s is None:
            decode.first_token_s = now_s
        if decode.decoding.wants_attention:
            best = [
                found._replace(attention=selection.attention[slot])
                for slot, found in zip(search.slots, best, strict=True)
            ]
        step = search.advance(best, len(self.active))
        if step is None:
            search.settle()
            result.tokens += len(decode.target_ids)
            decode.finish(search.beam.finished[0].finish_reason, now_s)
            return
        self.active.extend([decode] * len(step.forks))
        result.copies += step.copies
        result.forks += step.forks
        result.forced += step.tokens
        if decode.wants_deltas and search.settle():
            result.progressed.append(decode)

    def clear(self) -> list[Decode]:
        """Take all segments out of their slots; gives each once."""
        active = list(dict.fromkeys(self.active))
        self.active = []
        self._scored.clear()
        self._aligned.clear()
        self._searches.clear()
        self._choosers.clear()
        self._note_kinds()
        return active

    def _release(self, slots: list[int]) -> list[Move]:
        """Take segments out of their slots, the highest first, so that the last one is never one of them."""
        moves = []
        for slot in sorted(slots, reverse=True):
            decode = self.active[slot]
            self._scored.discard(decode)
            self._aligned.discard(decode)
            last = self.active.pop()
            if slot < len(self.active):
                self.active[slot] = last
                if last in self._searches:
                    self._searches[last].move(len(self.active), slot)
            moves.append((len(self.active), slot))
            self._searches.pop(decode, None)
            self._choosers.pop(decode, None)
        self._note_kinds()
        return moves

    def _note_kinds(self) -> None:
        self.is_plain = not (self._choosers or self._scored or self._searches or self._aligned)


def _next_forced(decode: Decode) -> tuple[int, bool]:
    """Take the next token that a segment is made to begin with; says whether it is part of the translation."""
    token, *rest = decode.forced_ids
    decode.forced_ids = tuple(rest)
    return token, len(rest) < len(decode.prefix_ids)


def expired_or_cancelled(decodes: Iterable[Decode], now_s: float) -> list[int]:
    """List the places of those that look cancelled or past their deadline; a deadline may move, so ask each again."""
    # Without a call for each: every slot is asked at every step.
    return [
        place
        for place, decode in enumerate(decodes)
        if decode.cancel_requested or ((deadline_s := decode.deadline_s) is not None and now_s >= deadline_s)
    ]
