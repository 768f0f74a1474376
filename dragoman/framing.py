"""What stands around the ids of a text so that a model of many languages knows which ones are meant."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dragoman.language_marks import Languages


class HasEnds(Protocol):
    """A manifest, or the configuration of a checkpoint."""

    @property
    def start_id(self) -> int:
        """From which a translation begins."""

    @property
    def eos_id(self) -> int:
        """The end-of-sentence id."""


class Frame(NamedTuple):
    """The marks of one pair of languages.

    Attributes:
        prefix: ids before those of the text.
        suffix: ids behind them: the end-of-sentence id, as a rule, and what stands behind that.
        start_ids: with which the translation begins: a start id, and tokens that are no part of it; (): the start id
            of the model alone.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    start_ids: tuple[int, ...]

    @classmethod
    def of(cls, languages: Languages | None, model: HasEnds, source: str = "", target: str = "") -> "Frame":
        """Make the frame of texts in one language that are translated into another.

        Args:
            languages: of the model; None: of a model for one pair, which needs to be told nothing.
            model: what knows its start and end.
            source: one of its source languages; "": the first, as all are alike where it need not be told.
            target: one of its target languages; "": the first.
        """
        if languages is None:
            return cls((), (model.eos_id,), ())
        into = languages.of(target or languages.targets[0])
        reads = languages.of(source or languages.sources[0])
        begins_differently = into.start_id is not None or into.target_prefix
        start_id = model.start_id if into.start_id is None else into.start_id
        return cls(
            prefix=reads.source_prefix + into.target_tag,
            suffix=(*((model.eos_id,) if languages.source_ends else ()), *reads.source_suffix),
            start_ids=(start_id, *into.target_prefix) if begins_differently else (),
        )

    def around(self, ids: Sequence[int]) -> list[int]:
        """Put the marks around the ids of a text."""
        return [*self.prefix, *ids, *self.suffix]

    @property
    def tokens(self) -> int:
        """Count the marks around a text, the end-of-sentence id among them."""
        return len(self.prefix) + len(self.suffix)
