"""The languages of texts, among those that may be meant; a plugin says how probable each is."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, Self

from service import plugins

# Told apart on every server: a text in one of them is not taken for one in a language that happens to be served.
_COMMON: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sv ta th tr uk ur"
    " vi zh"
)
COMMON: Final = tuple(_COMMON.split())
# Of a text: more of it would say no more.
LOOKED_AT: Final = 1_000
# That an answer names of a text.
MOST_GUESSES: Final = 5
# How much more probable the language of all texts of a call is for each: up to (1 + _ALONE) / _ALONE times.
_ALONE: Final = 0.1


class Guess(NamedTuple):
    """A language in which a text may be.

    Attributes:
        language: its code.
        confidence: how probable it is, 0 to 1.
    """

    language: str
    confidence: float


class Tongues(NamedTuple):
    """The languages that are told apart for a request.

    Attributes:
        expected: those that the texts may well be in.
        others: that they may be in all the same.
    """

    expected: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, sources: Sequence[str], served: Collection[str]) -> Self:
        """Give those of a request.

        Args:
            served: all languages that models read or write.
        """
        return cls(tuple(sources), (*sorted(set(served) - set(sources)), *COMMON))


class Detector(Protocol):
    """Says how probable languages are; reads what it needs at its first use. For any thread."""

    @property
    def is_loaded(self) -> bool:
        """Whether that has been read."""

    def load(self) -> None:
        """Read it; nothing happens where it has been read."""

    def rank(self, text: str, tongues: Tongues, *, html: bool = False) -> list[Guess]:
        """Say in which languages a text may be.

        Args:
            text: of any length, of which the beginning is looked at.
            html: whether it is HTML.

        Returns:
            All of them that the detector knows, the most probable first; none where the text says nothing about it.
        """


def new_detector() -> Detector:
    """Make a detector; raises InvalidRequestError where no plugin does."""
    detector: Detector = plugins.needed(plugins.DETECTION, "detects no languages")()
    return detector


def agree(rankings: Sequence[Sequence[Guess]], lengths: Sequence[int]) -> list[Guess | None]:
    """Take the texts of a call together: a short one is more probably in the language of the others.

    Returns:
        The language of each text, with its confidence by itself; None for one that says nothing.
    """
    shares: dict[str, float] = {}
    total = 0
    for ranking, length in zip(rankings, lengths, strict=True):
        if ranking:
            looked_at = min(length, LOOKED_AT)
            total += looked_at
            for language, confidence in ranking:
                shares[language] = shares.get(language, 0.0) + confidence * looked_at
    return [
        max(ranking, key=lambda guess: guess.confidence * (_ALONE + shares[guess.language] / total), default=None)
        for ranking in rankings
    ]


def most_frequent(guesses: Iterable[Guess | None], default: str) -> str:
    """Give the language of most texts, of equally many the first; or another where nothing is known of any."""
    found = [guess.language for guess in guesses if guess is not None]
    return max(dict.fromkeys(found), key=found.count, default=default)
