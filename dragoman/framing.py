"""Frames: the ids around a text that tell a model of many languages which languages are meant."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dragoman.language_marks import Languages


class HasEnds(Protocol):
    """A manifest, or the configuration of a checkpoint."""

    @property
    def start_id(self) -> int:
        """The id with which a translation begins."""

    @property
    def eos_id(self) -> int:
        """The end-of-sentence id."""


class Frame(NamedTuple):
    """The ids around a text for one pair of languages.

    Attributes:
        prefix: ids before the text.
        suffix: ids after the text: usually the end-of-sentence id and any further ids.
        start_ids: first ids of the translation: a start id, and forced ids that are not part of the translation; ():
            only the model's start id.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    start_ids: tuple[int, ...]

    @classmethod
    def of(cls, languages: Languages | None, model: HasEnds, source: str = "", target: str = "") -> "Frame":
        """Make the frame for texts in one language with a translation into another.

        Args:
            languages: the languages of the model; None: the model has one pair, and needs no language ids.
            model: gives the start id and the end-of-sentence id.
            source: a source language of the model; "": the first, since all are alike if the model need not know it.
            target: a target language of the model; "": the first.
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
        """Put the frame around the ids of a text."""
        return [*self.prefix, *ids, *self.suffix]

    @property
    def tokens(self) -> int:
        """Count the ids around a text, including the end-of-sentence id."""
        return len(self.prefix) + len(self.suffix)
