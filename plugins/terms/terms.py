"""All terms and kept parts of a call: found in its texts, and planned for each segment."""

from collections.abc import Callable, Iterable, Sequence

from dragoman.tokenizer import Tokenizer
from plugins.terms.finding import TermFinder
from plugins.terms.plan import TermPlanner
from service.rewriting import Span


class Terms(TermFinder):
    """The terms of a call, see `service.terms.Terms`."""

    def keeping(self, find: Callable[[str], Iterable[Span]], written: Callable[[str], str] = str) -> "Terms":
        """Give these terms, and between them the places that `find` finds in a text, in the form of `written`."""
        return Terms(self._indexes, self._kept, find, written)

    def planner(self, stand_ins: Sequence[str], tokenizer: Tokenizer, prefix: str, *, forces: bool) -> TermPlanner:
        """Make the planner for the segments of a text."""
        return TermPlanner(self, stand_ins, tokenizer, prefix, forces=forces)
