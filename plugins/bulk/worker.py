"""Makes output parts: reads the rows of a chunk, translates their texts, and writes the part whole."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from dragoman.answers import Translation
from dragoman.commands.lines import reason
from dragoman.files import write_whole
from plugins.bulk.columns import Columns, Outcome, wrong_text
from plugins.bulk.formats import format_of
from plugins.bulk.plan import Chunk

TranslateTexts = Callable[[list[str]], list[Translation]]


class Done(NamedTuple):
    """The result of a chunk. Of plain values only.

    Attributes:
        rows: the number of rows of the part.
        failed: the number of rows with an error.
    """

    rows: int
    failed: int


class Worker:
    """Makes one part after another."""

    def __init__(self, translate: TranslateTexts, out: Path, columns: Columns, model_sha256: str) -> None:
        """Make a worker.

        Args:
            translate: returns a translation, or one with an error, for each text.
            model_sha256: see `Outcome`.
        """
        self._translate = translate
        self._out = out
        self._columns = columns
        self._model_sha256 = model_sha256

    def __call__(self, chunk: Chunk) -> Done:
        """Make a part; its file appears whole, or not at all.

        Raises:
            DragomanError: the texts cannot be translated, or the input has changed.
            OSError: a file cannot be read or written.
        """
        chunk.check_unchanged()
        path = Path(chunk.path)
        rows = format_of(path).read(path, self._columns, chunk.start, chunk.end)
        chunk.check_unchanged()
        outcomes = self._outcomes(list(rows.texts))
        write_whole(chunk.part(self._out), rows.with_outcomes(outcomes))
        return Done(len(outcomes), sum(outcome.error is not None for outcome in outcomes))

    def _outcomes(self, texts: list[object]) -> list[Outcome]:
        wrong = [wrong_text(text) for text in texts]
        good = [str(text) for text, error in zip(texts, wrong, strict=True) if not error]
        translations = iter(self._translate(good) if good else [])
        return [self._failed(error) if error else self._outcome(next(translations)) for error in wrong]

    def _outcome(self, translation: Translation) -> Outcome:
        if translation.error is not None:
            return self._failed(reason(translation.error))
        return Outcome(
            translation=translation.text,
            finish_reason=translation.finish_reason,
            split=translation.split,
            unknown_pieces=translation.unknown_pieces,
            error=None,
            model_sha256=self._model_sha256,
        )

    def _failed(self, error: str) -> Outcome:
        return Outcome(None, None, None, None, " ".join(error.split()), self._model_sha256)
