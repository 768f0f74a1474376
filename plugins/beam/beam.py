"""Beam search over one source, on hypotheses only; without slots, arrays or a clock.

The search is that of Hugging Face's `generate` (transformers 5, `early_stopping=False`). Each step considers the best
`2 * size` continuations of all live hypotheses. Of the first `size` of them, those that end are finished; the first
`size` that do not end stay live. A finished hypothesis' score is its log-probability divided by its number of tokens,
including the end-of-sentence token, to the power of the length penalty. The `size` best are kept. The search ends once
`size` are finished, and the best live hypothesis, scored at its current length, is no better than the worst of them.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple, TypeAlias

from service.decode import Attention, FinishReason, Hypothesis
from service.engine.step import Best

_NONE: Final = -1  # no lane
# Linked lists of the attention of a hypothesis' tokens, the last token outermost: hypotheses share their beginnings.
_Trace: TypeAlias = "tuple[_Trace, Attention] | None"


class Live(NamedTuple):
    """A hypothesis that has not ended.

    Attributes:
        ids: its tokens so far.
        log_probability: the sum over its tokens.
        trace: the attention of its tokens, if it is recorded.
    """

    ids: tuple[int, ...]
    log_probability: float
    trace: _Trace = None

    def followed_by(self, token: int, log_probability: float, attention: Attention | None) -> "Live":
        """Extend the hypothesis by a token; `log_probability` is that of the result."""
        return Live((*self.ids, token), log_probability, None if attention is None else (self.trace, attention))


class Beam:
    """The hypotheses of one source, each in a lane: one at first, `size` after the first chosen token.

    Attributes:
        live: the live hypotheses, by lane.
        finished: the finished hypotheses, best first.
        ended: whether the search has ended.
    """

    __slots__ = ("_eos_id", "_given", "_length_penalty", "_limit", "_prefix", "ended", "finished", "live", "size")

    def __init__(self, size: int, length_penalty: float, *, limit: int, eos_id: int, given: int = 0) -> None:
        """Begin with nothing decoded.

        Args:
            size: the number of hypotheses kept; at least 2.
            length_penalty: see above.
            limit: the number of tokens at which every hypothesis ends.
            eos_id: the end-of-sentence token.
            given: the number of forced first tokens besides the start id, which are not part of the translation.
        """
        self.size = size
        self.live = [Live((), 0.0)]
        self.finished: list[Hypothesis] = []
        self.ended = False
        self._length_penalty = length_penalty
        self._limit = limit
        self._eos_id = eos_id
        self._given = given
        self._prefix = 0  # forced tokens of the translation, not chosen by the model

    def asked_ids(self, lane: int) -> Sequence[int]:
        """List the tokens whose log-probabilities the next step must report for the hypothesis of a lane."""
        return ()

    def begin_with(self, token: int, attention: Attention | None = None) -> None:
        """Append a forced token to a translation without chosen tokens; the token does not count in scores."""
        [live] = self.live
        self.live = [live.followed_by(token, 0.0, attention)]
        self._prefix += 1

    def advance(self, best: Sequence[Best]) -> list[int]:
        """Take a step.

        Args:
            best: the best tokens of each lane: `2 * size`, or all if there are fewer.

        Returns:
            For each lane of the new `live`, the lane whose hypothesis it continues: its own lane where possible.
        """
        tokens = 1 + len(self.live[0].ids)
        weight = self._weight(tokens)
        at_limit = tokens >= self._limit
        finished = len(self.finished)
        going_on: list[tuple[float, int, int]] = []
        for rank, (loss, lane, token) in enumerate(self._most_probable(best)):
            if token != self._eos_id and not at_limit:
                going_on.append((-loss, lane, token))
                if len(going_on) == self.size:
                    # A later continuation could not finish: only the first `size` may.
                    break
            elif rank < self.size:
                ended, reason = self.live[lane], FinishReason.EOS
                if token != self._eos_id:
                    ended, reason = ended.followed_by(token, -loss, best[lane].attention), FinishReason.LENGTH
                self.finished.append(self._hypothesis(ended, -loss, weight, reason, tokens))
        if len(self.finished) > finished:
            self._keep_best()
        is_full = len(self.finished) == self.size
        self.ended = not going_on or (is_full and going_on[0][0] / weight <= self.finished[-1].score)
        return [] if self.ended else self._go_on(going_on, best)

    def stop(self) -> None:
        """End the search with the present hypotheses, because the best live one repeats itself."""
        tokens = len(self.live[0].ids)
        weight = self._weight(tokens)
        self.finished += [
            self._hypothesis(live, live.log_probability, weight, FinishReason.REPETITION, tokens) for live in self.live
        ]
        self._keep_best()
        self.ended = True

    def common_ids(self, known: int) -> tuple[int, ...]:
        """Give the tokens with which every hypothesis begins, so that all later hypotheses begin with them too.

        Args:
            known: the number of tokens already known to be common.
        """
        first, *others = [live.ids for live in self.live] + [tuple(each.target_ids) for each in self._found()]
        common = min(map(len, (first, *others)))
        for place in range(known, common):
            if any(ids[place] != first[place] for ids in others):
                return tuple(first[:place])
        return tuple(first[:common])

    def _most_probable(self, best: Sequence[Best]) -> Iterator[tuple[float, int, int]]:
        """Give the `2 * size` most probable continuations: negated log-probability, lane, token.

        Of equal ones the earlier lane comes first, and then the better token. Only a few are needed, so the lanes are
        merged only up to that number.
        """
        # The best remaining continuation of each lane, with its rank in the lane.
        heads = [
            (-live.log_probability - found.log_probabilities[0], lane, 0)
            for lane, (live, found) in enumerate(zip(self.live, best, strict=True))
        ]
        heapify(heads)
        for _ in range(2 * self.size):
            if not heads:
                return
            loss, lane, rank = heads[0]
            found = best[lane]
            yield loss, lane, found.ids[rank]
            rank += 1
            if rank < len(found.ids):
                loss = -self.live[lane].log_probability - found.log_probabilities[rank]
                heapreplace(heads, (loss, lane, rank))
            else:
                heappop(heads)

    def _found(self) -> Sequence[Hypothesis]:
        """List the finished hypotheses that may become the translation."""
        return self.finished

    def _weight(self, tokens: int) -> float:
        return float((self._given + tokens - self._prefix) ** self._length_penalty)

    def _hypothesis(
        self, live: Live, log_probability: float, weight: float, reason: FinishReason, tokens: int
    ) -> Hypothesis:
        """Make the result of a hypothesis that ends, with the log-probability of all its tokens."""
        score = log_probability / weight
        return Hypothesis(live.ids, log_probability, score, reason, tokens - self._prefix, _in_order(live.trace))

    def _keep_best(self) -> None:
        self.finished.sort(key=lambda hypothesis: -hypothesis.score)
        del self.finished[self.size :]

    def _go_on(self, going_on: Sequence[tuple[float, int, int]], best: Sequence[Best]) -> list[int]:
        """Assign lanes: the first continuation of a lane stays there, the others take free or new lanes."""
        live, parents = self.live.copy(), [_NONE] * len(self.live)
        others = []
        for log_probability, lane, token in going_on:
            continued = self.live[lane].followed_by(token, log_probability, best[lane].attention)
            if parents[lane] == _NONE:
                parents[lane], live[lane] = lane, continued
            else:
                others.append((lane, continued))
        for lane, continued in others:
            if _NONE in parents:
                place = parents.index(_NONE)
                parents[place], live[place] = lane, continued
            else:
                parents.append(lane)
                live.append(continued)
        self.live = live
        return parents


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Count the common first tokens of two translations."""
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _in_order(trace: _Trace) -> list[Attention]:
    rows = []
    while trace is not None:
        trace, row = trace
        rows.append(row)
    return rows[::-1]
