"""Beam search for translations that hold given terms: dynamic beam allocation (Post and Vilar, arXiv:1804.06609).

Beside the best continuations of each hypothesis, those are looked at that lead on to a term (Hokamp and Liu,
arXiv:1704.07138). Terms are seldom what the model would say next, so more probable continuations would crowd them out.
Therefore continuations are in banks, by the tokens of terms that they hold. The most probable continuation goes on,
whatever it holds: the model may be about to write the terms where they belong. So does the best of each bank, that of
the fullest in any case. The lanes that are left go to the most probable continuations of all banks: measured, that is
better than to share them evenly. The fullest bank gets further at every step, so all terms are met before a limit that
has room for them.

Two rules keep the model from making up text around terms. A term that was begun against its will is not given up. And
where it would rather end the translation, only terms follow, until all are met.

A third rule is for what may stand there only a number of times: it does not follow once more, see :class:`Surplus`. So
a hypothesis that has it at a wrong place cannot have it at the right one as well, and becomes improbable.

A hypothesis may end once it holds all terms. Scores are those of any beam. The search ends once as many hypotheses as
are wanted have ended, and the best live one scores no better by its length so far than the worst of these.

The best hypothesis that the model would have ended without some terms is remembered. It is the translation where the
terms cost too much, see `Constraints.most_loss`.
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

# A continuation of a hypothesis: its log-probability negated, its lane, the rank of its token in the lane, the token,
# how far it is. So the most probable one sorts first; of equals the earlier lane, and then the better token.
_Candidate: TypeAlias = tuple[float, int, int, int, Progress]
_EVEN: Final = math.log(0.5)  # a token with more is more probable than all others together


class _Lane(NamedTuple):
    """What a hypothesis may go on with.

    Attributes:
        progress: how far it is with the terms.
        is_bound: whether its last token was none of the best: what it has of a term is not given up.
        is_said: whether it would have ended but for terms: nothing else follows until all are met.
    """

    progress: Progress
    is_bound: bool = False
    is_said: bool = False


class ConstrainedBeam(Beam):
    """A beam whose finished hypotheses hold all terms, unless the limit is too near for that."""

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
        """Begin with nothing decoded.

        Args:
            size: see :class:`Beam`.
            length_penalty: likewise.
            limit: of tokens, the terms' too, at which every hypothesis ends.
            eos_id: see :class:`Beam`.
            constraints: what each translation holds.
            wanted: hypotheses that are to be found, from 1.
            given: see :class:`Beam`.
        """
        super().__init__(size, length_penalty, limit=limit, eos_id=eos_id, given=given)
        self._wanted = wanted
        self._lanes = [_Lane(Terms(constraints).start)]
        self._surplus = Surplus(constraints)
        self._most_loss = constraints.most_loss * len(constraints.terms)
        self._unforced: Hypothesis | None = None

    def asked_ids(self, lane: int) -> Sequence[int]:
        """List the tokens that lead on to a term; the end, once all terms are met."""
        progress = self._lanes[lane].progress
        return (self._eos_id,) if progress.is_complete else progress.wanted

    def begin_with(self, token: int, attention: Attention | None = None) -> None:
        """Give a translation, in which nothing was chosen yet, its next token, which may be one of a term."""
        super().begin_with(token, attention)
        self._lanes = [_Lane(self._lanes[0].progress.after(token))]

    def advance(self, best: Sequence[Best]) -> list[int]:
        """Take a step.

        Args:
            best: of each lane, `2 * size` tokens or as many as there are, and those that were asked for.

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

        What has ended is found; where nothing has, live hypotheses that hold all terms are. Where none does, the search
        goes on until one does: the fullest bank gets further at every step.
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
        """Remember what the model would end now, if that is the best so far that lacks terms."""
        tokens = 1 + len(self.live[0].ids)
        for live, lane, found in zip(self.live, self._lanes, best, strict=True):
            if lane.progress.is_complete or lane.is_bound or lane.is_said or found.ids[0] != self._eos_id:
                continue
            value = live.log_probability + found.log_probabilities[0]
            if self._unforced is None or value > self._unforced.log_probability:
                self._unforced = self._hypothesis(live, value, self._weight(tokens), FinishReason.EOS, tokens)

    def _weigh(self) -> None:
        """Put the hypothesis without some terms among the others, where the terms have cost them all too much."""
        if self._unforced is not None:
            least = self._unforced.log_probability - self._most_loss
            if all(each.log_probability < least for each in self.finished):
                self.finished.append(self._unforced)
                self._keep_best()

    def _would_end(self, best: Best) -> bool:
        return best.ids[0] == self._eos_id and best.log_probabilities[0] > _EVEN

    def _looked_at(self, best: Best) -> Sequence[int]:
        """List the best tokens that count: others beside this segment may need more."""
        return best.ids[: 2 * self.size]

    def _candidates(self, best: Sequence[Best]) -> list[_Candidate]:
        """List the continuations that are looked at, the most probable first."""
        candidates: list[_Candidate] = []
        for lane, live in enumerate(self.live):
            progress, before = self._lanes[lane].progress, -live.log_probability
            next_tokens = self._without_surplus(lane, self._next_tokens(lane, best[lane])).items()
            candidates += [
                (before - value, lane, rank, token, progress if token == self._eos_id else progress.after(token))
                for rank, (token, value) in enumerate(next_tokens)
            ]
        candidates.sort()  # no two have the same lane and rank, so progress is not compared
        return candidates

    def _next_tokens(self, lane: int, best: Best) -> Mapping[int, float]:
        """Choose the tokens that a hypothesis may go on with, at least one, each with its log-probability."""
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
        """Leave out the tokens that would be too many, unless they lead on to a term; if there are others."""
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
        """Finish hypotheses: of the best that hold all terms, those with the end; at the limit all of them.

        At a limit that was too near, those that hold the most of the terms are finished.
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
        """Choose the continuations that go on: the most probable, the best of banks, the next most probable."""
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
