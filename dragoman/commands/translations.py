"""The output of `dragoman translate`: lines for people, or JSON objects for programs."""

import json
import sys
from collections.abc import Iterator
from typing import NamedTuple

from dragoman.answers import Translation
from dragoman.commands.lines import Chunk, complain, reason
from dragoman.errors import DragomanError


class Shown(NamedTuple):
    """The parts of a translation that are written.

    Attributes:
        as_json: whether a line is a JSON object.
        alternatives: whether all alternatives are written.
        alignments: whether the aligned words are written.
        misses: whether missing glossary terms are written into the object.
        languages: whether the detected languages are written.
        qualities: whether the quality estimates are written.
    """

    as_json: bool
    alternatives: bool
    alignments: bool
    misses: bool
    languages: bool
    qualities: bool


def untranslated(error: DragomanError, model: str = "") -> Translation:
    """Make the placeholder for a missing translation."""
    return Translation("", model, 0, 0, "UNSPECIFIED", 0, error=error)


class Output:
    """Writes translations to standard output, and errors to standard error.

    Attributes:
        failed: how many texts could not be translated.
    """

    def __init__(self, unit: str, shown: Shown) -> None:
        """Begin without a text.

        Args:
            unit: the name of a text in messages, such as "line".
            shown: the parts of a translation that are written.
        """
        self._unit = unit
        self._shown = shown
        self.failed = 0

    def write(self, chunk: Chunk, translations: list[Translation]) -> None:
        """Write a line for each text, or for each alternative or each aligned word of it, in order."""
        for number, (text, translation) in enumerate(zip(chunk.lines, translations, strict=True), chunk.first):
            if translation.error is not None:
                self.failed += 1
                complain("translate", f"{self._unit} {number}: {reason(translation.error)}")
            for term in translation.glossary_misses:
                complain("translate", f"{self._unit} {number}: not in the translation as it should be: {term}")
            for line in self._lines(number, text, translation):
                sys.stdout.buffer.write(line.encode() + b"\n")
        sys.stdout.flush()

    def _lines(self, number: int, text: str, translation: Translation) -> Iterator[str]:
        if self._shown.as_json:
            yield json.dumps(_as_dict(text, translation, self._shown), ensure_ascii=False)
        elif not (self._shown.alternatives or self._shown.alignments):
            yield translation.text
        elif translation.error is not None:
            yield f"{number}\t\t"
        elif self._shown.alignments:
            for each in translation.alignments:
                word = text[each.source_start : each.source_end]
                yield f"{number}\t{word}\t{translation.text[each.target_start : each.target_end]}\t{each.weight:.2f}"
        else:
            for alternative in translation.alternatives:
                translated = alternative.text.replace("\t", " ")  # a tab would begin a column
                yield f"{number}\t{alternative.score:.6f}\t{translated}"


def _as_dict(text: str, translation: Translation, shown: Shown) -> dict[str, object]:
    error = translation.error
    described: dict[str, object] = {
        "text": text,
        "translation": translation.text if error is None else None,
        "finish_reason": translation.finish_reason if error is None else None,
        "model": translation.model,
        "source_tokens": translation.source_tokens,
        "target_tokens": translation.target_tokens,
        "error": error and {"reason": error.reason, "message": reason(error)},
    }
    if shown.languages or translation.detected_language:
        described["detected_language"] = translation.detected_language
        described["detection_confidence"] = translation.detection_confidence
    if translation.seed is not None:
        described["seed"] = translation.seed
    if shown.misses:
        described["glossary_misses"] = translation.glossary_misses
    if shown.alternatives:
        described["alternatives"] = [
            {
                "translation": each.text,
                "score": each.score,
                "mean_log_probability": each.mean_log_probability,
                "finish_reason": each.finish_reason,
            }
            for each in translation.alternatives
        ]
    if shown.alignments:
        described["alignments"] = [each._asdict() for each in translation.alignments]
    if shown.qualities:
        described["quality_estimate"] = translation.quality_estimate
        described["segment_qualities"] = [each._asdict() for each in translation.segment_qualities]
    return described
