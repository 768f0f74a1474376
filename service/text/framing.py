"""What stands around the ids of a text so that a model of many languages knows which ones are meant."""

from typing import NamedTuple

from dragoman.bundle import Manifest


class Frame(NamedTuple):
    """The marks of one pair of languages.

    Attributes:
        prefix: ids before those of the text.
        suffix: ids behind them: the end-of-sentence id, and what stands behind that.
        start_ids: with which the translation begins, see `service.decode.Decode`.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    start_ids: tuple[int, ...]

    @classmethod
    def of(cls, manifest: Manifest, source: str = "", target: str = "") -> "Frame":
        """Make the frame of texts in one language that are translated into another.

        Args:
            manifest: of the model.
            source: one of its source languages; "": the first, as all are alike where it need not be told.
            target: one of its target languages; "": the first.
        """
        languages = manifest.languages
        into = languages.of(target or languages.targets[0])
        reads = languages.of(source or languages.sources[0])
        begins_differently = into.start_id is not None or into.target_prefix
        start_id = manifest.start_id if into.start_id is None else into.start_id
        return cls(
            prefix=reads.source_prefix + into.target_tag,
            suffix=(manifest.eos_id, *reads.source_suffix),
            start_ids=(start_id, *into.target_prefix) if begins_differently else (),
        )

    def around(self, ids: list[int]) -> list[int]:
        """Put the marks around the ids of a text."""
        return [*self.prefix, *ids, *self.suffix]

    @property
    def tokens(self) -> int:
        """Count the marks around a text, the end-of-sentence id among them."""
        return len(self.prefix) + len(self.suffix)
