"""Language detection: the probable languages of a text.

The classifier is py3langid (naive Bayes over byte sequences, see Lui and Baldwin, langid.py, ACL 2012). Its model takes
about 80 MB of memory and half a second to read. So it is read at its first use, or once a server with HTTP serves.
"""

import io
import lzma
import re
import threading
from array import array
from collections.abc import Mapping
from copy import copy
from functools import cache, lru_cache
from html import unescape
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from service.text.detection import LOOKED_AT, CandidateLanguages, Guess

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Characters that are examined, with tags and blanks.
_MARKUP: Final = 4 * LOOKED_AT
# Prior weight: how much more probable an expected language is than another one, before the text is examined. 3 gives
# the smallest sum of both kinds of mistakes in bench/RESULTS.md.
_EXPECTED: Final = 3.0
# Markup; at the end of the examined text, an element may still be open.
_TAGS: Final = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
# Language codes that have another label in the classifier, or no label of their own.
_LABELS: Final = {"nb": "no", "iw": "he", "in": "id", "fil": "tl", "cmn": "zh"}


class LanguageDetector:
    """Computes the probabilities of languages; reads its model at first use. Thread-safe."""

    def __init__(self) -> None:
        self._model: LanguageIdentifier | None = None
        self._loading = threading.Lock()
        self._restricted = lru_cache(maxsize=4)(self._restrict)
        self._scales = lru_cache(maxsize=256)(_scale)

    @property
    def is_loaded(self) -> bool:
        """Whether the model has been read."""
        return self._model is not None

    def load(self) -> None:
        """Read the model; no effect if it was already read."""
        with self._loading:
            if self._model is None:
                self._model = _read()

    def rank(self, text: str, candidates: CandidateLanguages, *, html: bool = False) -> list[Guess]:
        """Find the possible languages of a text.

        Args:
            text: a text of any length; only its beginning is examined.
            html: whether the text is HTML.

        Returns:
            All languages that the model knows, the most probable first; none if the text shows no language.
        """
        self.load()
        scale = self._scales(candidates)
        shown = unescape(_TAGS.sub(" ", text[:_MARKUP])) if html else text[:_MARKUP]
        shown = " ".join(shown.split())[:LOOKED_AT]  # blanks at the ends, and several together, have scores as well
        identifier, nothing = self._restricted(frozenset(scale))
        # The classifier also learned sequences of digits: dates and prices of some languages.
        if not any(map(str.isalpha, shown)) or (scores := dict(identifier.rank(shown))) == nothing:
            return []
        weighted = [(scale[label][0], score * scale[label][1]) for label, score in scores.items()]
        total = sum(weight for _, weight in weighted)
        weighted.sort(key=itemgetter(1), reverse=True)
        return [Guess(code, weight / total) for code, weight in weighted]

    def _restrict(self, labels: frozenset[str]) -> "tuple[LanguageIdentifier, Mapping[str, float]]":
        """Make a copy for some languages, and give its result for a text that shows no language.

        The copy is never changed, so threads can share it.
        """
        assert self._model is not None
        identifier = copy(self._model)
        identifier.set_languages(labels & set(self._model.labels))
        return identifier, dict(identifier.rank(""))


def _scale(candidates: CandidateLanguages) -> Mapping[str, tuple[str, float]]:
    """Map the labels of the classifier to language codes and prior weights.

    If several codes share a label, an expected code is preferred, then the most general one.
    """
    found: dict[str, tuple[str, float]] = {}
    for group, weight in ((candidates.expected, _EXPECTED), (candidates.others, 1.0)):
        for code in sorted(group, key=len):
            label = code.lower().partition("-")[0]
            found.setdefault(_LABELS.get(label, label), (code, weight))
    return found


@cache
def _read() -> "LanguageIdentifier":
    """Read the model once in a process; it is never changed.

    `py3langid.modelio.load_model` does the same with a 68 MB file in the system's /tmp, which may be small.
    """
    from py3langid import langid

    with lzma.open(Path(langid.MODEL_DIR) / langid.MODEL_FILE) as file, np.load(io.BytesIO(file.read())) as data:
        return langid.LanguageIdentifier(
            data["ptc"],
            data["pc"],
            data["classes"].tolist(),
            _array(data["nextmove"]),
            data["out_feat"].tolist(),
            norm_probs=True,
            tk_row=_array(data["nextmove_row"]),
        )


def _array(numbers: np.ndarray) -> "array[int]":
    """Convert numbers to the form in which Python reads single numbers fastest."""
    found = array(numbers.dtype.char)
    found.frombytes(numbers.data.cast("B"))  # a single copy: other threads wait for it
    return found
