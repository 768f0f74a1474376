"""What a call wants to have a given translation: found in its texts, and planned for each segment."""

from collections.abc import Sequence

from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import TermFinder
from plugins.terms.plan import TermPlanner


class Terms(TermFinder):
    """The terms of a call, as `service.terms.Terms` has them."""

    def planner(self, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool) -> TermPlanner:
        """Make what plans the segments of a text."""
        return TermPlanner(self, stand_ins, tokenizer, prefix, forces=forces)
