"""How probable languages are for a text.

py3langid (a naive Bayes classifier over sequences of bytes, see Lui and Baldwin, langid.py, ACL 2012) says it. Its
model takes some 80 MB of memory, and half a second to read, so it is read when it is first used, or once a server with
HTTP serves.
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
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from service.text.detection import LOOKED_AT, Guess, Tongues

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Looked at of HTML, tags counted.
_MARKUP: Final = 4 * LOOKED_AT
# How much more probable it is, before a text is looked at, that it is in a language that can be meant than in another
# one. 3 has the best sum of both mistakes in bench/RESULTS.md.
_EXPECTED: Final = 3.0
# What is no text; at the end of what is looked at, an element may be open.
_TAGS: Final = re.compile(r"<(script|style)\b.*?(?:</\1|\Z)|<!--.*?(?:-->|\Z)|<[^<>]*>", re.DOTALL | re.IGNORECASE)
# What the classifier calls otherwise than BCP-47, or not at all.
_LABELS: Final = {"nb": "no", "iw": "he", "in": "id", "fil": "tl", "cmn": "zh"}


class _Restricted(NamedTuple):
    """A classifier that knows some languages.

    Attributes:
        identifier: itself.
        nothing: what it says of a text that says nothing.
    """

    identifier: "LanguageIdentifier"
    nothing: Mapping[str, float]


class LanguageDetector:
    """Says how probable languages are; reads its model at its first use. For any thread."""

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
        """Read the model; nothing happens where it has been read."""
        with self._loading:
            if self._model is None:
                self._model = _read()

    def rank(self, text: str, tongues: Tongues, *, html: bool = False) -> list[Guess]:
        """Say in which languages a text may be.

        Args:
            text: of any length, of which the beginning is looked at.
            html: whether it is HTML.

        Returns:
            All of them that the model knows, the most probable first; none where the text says nothing about it.
        """
        self.load()
        scale = self._scales(tongues)
        shown = (unescape(_TAGS.sub(" ", text[:_MARKUP])) if html else text)[:LOOKED_AT]
        identifier, nothing = self._restricted(frozenset(scale))
        # The classifier knows sequences of digits, too: dates and prices of some languages.
        if not any(map(str.isalpha, shown)) or (scores := dict(identifier.rank(shown))) == nothing:
            return []
        weighted = [(scale[label][0], score * scale[label][1]) for label, score in scores.items()]
        total = sum(weight for _, weight in weighted)
        weighted.sort(key=itemgetter(1), reverse=True)
        return [Guess(code, weight / total) for code, weight in weighted]

    def _restrict(self, labels: frozenset[str]) -> _Restricted:
        """Make a copy for some languages; it is not changed any more, so threads can share it."""
        assert self._model is not None
        identifier = copy(self._model)
        identifier.set_languages(labels & set(self._model.labels))
        return _Restricted(identifier, dict(identifier.rank("")))


def _scale(tongues: Tongues) -> Mapping[str, tuple[str, float]]:
    """Map what the classifier calls languages to their codes, and to how probable they are in advance.

    Of several codes an expected one is taken first, and the most general.
    """
    found: dict[str, tuple[str, float]] = {}
    for group, weight in ((tongues.expected, _EXPECTED), (tongues.others, 1.0)):
        for code in sorted(group, key=len):
            label = code.lower().partition("-")[0]
            found.setdefault(_LABELS.get(label, label), (code, weight))
    return found


@cache
def _read() -> "LanguageIdentifier":
    """Read the model, which nobody changes, once in a process.

    `py3langid.modelio.load_model` does the same over a file of 68 MB in the system's /tmp, which may be small.
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
    """Give numbers in the form of which Python reads single ones fastest."""
    found = array(numbers.dtype.char)
    found.frombytes(numbers.data.cast("B"))  # one copy: other threads wait for it
    return found
