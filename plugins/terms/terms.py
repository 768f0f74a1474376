"""What a call wants to have a given translation: found in its texts, and planned for each segment."""

from collections.abc import Callable, Iterable, Sequence

from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import TermFinder
from plugins.terms.plan import TermPlanner
from service.rewriting import Span


class Terms(TermFinder):
    """The terms of a call, as `service.terms.Terms` has them."""

    def keeping(self, find: Callable[[str], Iterable[Span]]) -> "Terms":
        """Give these, and between them places that `find` finds in a text, which stay as they are."""
        return Terms(self._indexes, self._kept, find)

    def planner(self, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool) -> TermPlanner:
        """Make what plans the segments of a text."""
        return TermPlanner(self, stand_ins, tokenizer, prefix, forces=forces)
