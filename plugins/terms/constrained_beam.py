"""Beam search for translations that contain given terms: dynamic beam allocation (Post and Vilar, arXiv:1804.06609).

Besides the best continuations of each hypothesis, the search considers those that continue a term (Hokamp and Liu,
arXiv:1704.07138). The model rarely prefers the tokens of a term, so more probable continuations would crowd them out.
Therefore continuations are put in banks by the number of term tokens that they contain. These go on: the most probable
continuation, in any bank, since the model may be about to write the terms in their natural place; the best of each
bank, at least that of the fullest bank; and, in the remaining lanes, the most probable continuations of all banks,
which was measured to be better than equal shares. The fullest bank grows at every step, so all terms are met before the
limit, if the limit has room for them.

Two rules keep the model from inventing text around terms. A term that was begun against the model's preference is
completed. And when the model would rather end the translation, only terms follow, until all are met.

A third rule limits kept items: an item that has reached its number may not follow again, see :class:`Surplus`. So a
hypothesis with the item in a wrong place cannot have it in the right place as well, and becomes improbable.

A hypothesis may end when it contains all terms. Scores are those of any beam. The search ends once the wanted number of
hypotheses are finished, and the best live one, scored at its current length, is no better than the worst of these.

The search remembers the best hypothesis that the model would have ended without all terms. This becomes the translation
if the terms cost too much, see `Constraints.most_loss`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from plugins.beam.beam import Beam
from plugins.terms.surplus import Surplus
from plugins.terms.term_progress import Progress, Terms
from service.constraints import Constraints
from service.decode import Attention, FinishReason, Hypothesis
from service.engine.step import Best

# A continuation of a hypothesis: its negated log-probability, its lane, the rank of its token in the lane, the token,
# its progress. So the most probable one sorts first; of equal ones the earlier lane, and then the better token.
_Candidate: TypeAlias = tuple[float, int, int, int, Progress]
_EVEN: Final = math.log(0.5)  # a token above this is more probable than all others together


class _Lane(NamedTuple):
    """The state of one hypothesis.

    Attributes:
        progress: its progress with the terms.
        is_bound: whether its last token was not among the best: then its begun term must be completed.
        is_said: whether the model would have ended it already: only terms may follow until all are met.
    """

    progress: Progress
    is_bound: bool = False
    is_said: bool = False


class ConstrainedBeam(Beam):
    """A beam whose finished hypotheses contain all terms, unless the limit leaves no room for that."""

    __slots__ = ("_lanes", "_most_loss", "_surplus", "_unforced", "_wanted")

    def __init__(
        self,
        size: int,
        length_penalty: float,
        *,
        limit: int,
        eos_id: int,
        constraints: Constraints,
        wanted: int = 1,
        given: int = 0,
    ) -> None:
        """Begin with nothing decoded; see :class:`Beam` for the other arguments.

        Args:
            limit: the number of tokens, with those of the terms, at which every hypothesis ends.
            constraints: the terms that each translation must contain.
            wanted: the number of hypotheses to find, from 1.
        """
        super().__init__(size, length_penalty, limit=limit, eos_id=eos_id, given=given)
        self._wanted = wanted
        self._lanes = [_Lane(Terms(constraints).start)]
        self._surplus = Surplus(constraints)
        self._most_loss = constraints.most_loss * len(constraints.terms)
        self._unforced: Hypothesis | None = None

    def asked_ids(self, lane: int) -> Sequence[int]:
        """List the tokens that continue a term; the end-of-sentence token once all terms are met."""
        progress = self._lanes[lane].progress
        return (self._eos_id,) if progress.is_complete else progress.wanted

    def begin_with(self, token: int, attention: Attention | None = None) -> None:
        """Append a forced token, which may be part of a term, to a translation without chosen tokens."""
        super().begin_with(token, attention)
        self._lanes = [_Lane(self._lanes[0].progress.after(token))]

    def advance(self, best: Sequence[Best]) -> list[int]:
        """Take a step.

        Args:
            best: the best tokens of each lane: `2 * size`, or all if there are fewer, and the requested ones.

        Returns:
            See :class:`Beam`.
        """
        if self._most_loss < math.inf:
            self._remember_unforced(best)
        in_order = zip(self._lanes, best, strict=True)
        self._lanes = [lane._replace(is_said=True) if self._would_end(each) else lane for lane, each in in_order]
        candidates = self._candidates(best)
        self._end(candidates, best)
        tokens = 1 + len(self.live[0].ids)
        going_on: list[_Candidate] = []
        if tokens < self._limit:
            going_on = self._shared(each for each in candidates if each[3] != self._eos_id)
        found = self.finished[self._wanted - 1 : self._wanted]
        self.ended = not going_on or (bool(found) and -going_on[0][0] / self._weight(tokens) <= found[0].score)
        if self.ended:
            self._weigh()
            return []
        parents = self._go_on([(-loss, lane, token) for loss, lane, _, token, _ in going_on], best)
        before = self._lanes
        self._lanes = []
        for parent, live in zip(parents, self.live, strict=True):
            lane, token = before[parent], live.ids[-1]
            is_bound = token not in self._looked_at(best[parent])
            self._lanes.append(_Lane(lane.progress.after(token), is_bound, lane.is_said))
        return parents

    def stop(self) -> None:
        """End the search because the best live hypothesis repeats itself.

        Finished hypotheses are the result; if there are none, the live hypotheses with all terms. If none of those
        exists either, the search goes on until one does: the fullest bank grows at every step.
        """
        in_order = zip(self.live, self._lanes, strict=True)
        complete = [live for live, lane in in_order if lane.progress.is_complete]
        if complete and not self.finished:
            self.live = complete
            super().stop()
        self.ended = bool(self.finished)
        if self.ended:
            self._weigh()

    def _found(self) -> Sequence[Hypothesis]:
        return [*self.finished, *([self._unforced] if self._unforced else [])]

    def _remember_unforced(self, best: Sequence[Best]) -> None:
        """Remember the hypothesis that the model would end now, if it is the best so far that lacks terms."""
        tokens = 1 + len(self.live[0].ids)
        for live, lane, found in zip(self.live, self._lanes, best, strict=True):
            if lane.progress.is_complete or lane.is_bound or lane.is_said or found.ids[0] != self._eos_id:
                continue
            value = live.log_probability + found.log_probabilities[0]
            if self._unforced is None or value > self._unforced.log_probability:
                self._unforced = self._hypothesis(live, value, self._weight(tokens), FinishReason.EOS, tokens)

    def _weigh(self) -> None:
        """Add the hypothesis without all terms to the others, if the terms have made all of these too improbable."""
        if self._unforced is not None:
            least = self._unforced.log_probability - self._most_loss
            if all(each.log_probability < least for each in self.finished):
                self.finished.append(self._unforced)
                self._keep_best()

    def _would_end(self, best: Best) -> bool:
        return best.ids[0] == self._eos_id and best.log_probabilities[0] > _EVEN

    def _looked_at(self, best: Best) -> Sequence[int]:
        """List the best tokens that this search uses; other segments may have requested more."""
        return best.ids[: 2 * self.size]

    def _candidates(self, best: Sequence[Best]) -> list[_Candidate]:
        """List the continuations to consider, the most probable first."""
        candidates: list[_Candidate] = []
        for lane, live in enumerate(self.live):
            progress, before = self._lanes[lane].progress, -live.log_probability
            next_tokens = self._without_surplus(lane, self._next_tokens(lane, best[lane])).items()
            candidates += [
                (before - value, lane, rank, token, progress if token == self._eos_id else progress.after(token))
                for rank, (token, value) in enumerate(next_tokens)
            ]
        candidates.sort()  # lane and rank together are unique, so progress is not compared
        return candidates

    def _next_tokens(self, lane: int, best: Best) -> Mapping[int, float]:
        """Choose the possible next tokens of a hypothesis, at least one, each with its log-probability."""
        progress, is_bound, is_said = self._lanes[lane]
        tokens = dict(zip(self._looked_at(best), best.log_probabilities, strict=False))
        asked = dict(zip(self.asked_ids(lane), best.asked, strict=False))
        if progress.is_complete:
            return tokens | asked
        tokens.pop(self._eos_id, None)
        if is_said:
            return {token: value for token, value in asked.items() if progress.after(token).met > progress.met} or asked
        tokens |= asked
        if is_bound:
            return {
                token: value for token, value in tokens.items() if progress.after(token).met >= progress.met
            } or tokens
        return tokens

    def _without_surplus(self, lane: int, tokens: Mapping[int, float]) -> Mapping[int, float]:
        """Leave out tokens that would repeat an item too often, except those that continue a term; if others remain."""
        progress, ids = self._lanes[lane].progress, self.live[lane].ids
        left = {
            token: value
            for token, value in tokens.items()
            if token == self._eos_id
            or not self._surplus.is_made_by(token, ids)
            or progress.after(token).met > progress.met
        }
        return left or tokens

    def _end(self, candidates: Sequence[_Candidate], best: Sequence[Best]) -> None:
        """Finish the best hypotheses with all terms that end here; at the limit, all of them end.

        If the limit left no room for all terms, the hypotheses with the most term tokens are finished.
        """
        tokens = 1 + len(self.live[0].ids)
        weight, at_limit = self._weight(tokens), tokens >= self._limit
        ending = [each for each in candidates if each[4].is_complete][: self.size]
        if at_limit and not (ending or self.finished):
            most = max(each[4].met for each in candidates)
            ending = [each for each in candidates if each[4].met == most][: self.size]
        for loss, lane, _, token, _ in ending:
            if token == self._eos_id:
                self.finished.append(self._hypothesis(self.live[lane], -loss, weight, FinishReason.EOS, tokens))
            elif at_limit:
                ended = self.live[lane].followed_by(token, -loss, best[lane].attention)
                self.finished.append(self._hypothesis(ended, -loss, weight, FinishReason.LENGTH, tokens))
        self._keep_best()

    def _shared(self, candidates: Iterable[_Candidate]) -> list[_Candidate]:
        """Choose the next continuations: the most probable, the best of each bank, then the next most probable."""
        in_order = list(candidates)
        banks: dict[int, _Candidate] = {}
        for candidate in in_order:
            banks.setdefault(candidate[4].met, candidate)
        fullest = [banks[met] for met in sorted(banks, reverse=True)]
        chosen: list[_Candidate] = []
        for candidate in [*in_order[:1], *fullest, *in_order]:
            if candidate not in chosen and len(chosen) < self.size:
                chosen.append(candidate)
        return sorted(chosen)
