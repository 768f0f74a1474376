"""Detection of the languages of texts; a plugin estimates how probable each possible language is."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Protocol, Self

from service import plugins

# Every server detects these languages: a text in one of them is not mistaken for a text in some served language.
_COMMON: Final = (
    "ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv nl no pl pt ro ru sk sl sv ta th tr uk ur"
    " vi zh"
)
COMMON: Final = tuple(_COMMON.split())
# Characters of a text that are looked at: more characters would not help.
LOOKED_AT: Final = 1_000
# Most languages that an answer names for a text.
MOST_GUESSES: Final = 5
# The language of all texts of a call is more probable for each text: up to (1 + _ALONE) / _ALONE times.
_ALONE: Final = 0.1


class Guess(NamedTuple):
    """A language in which a text may be.

    Attributes:
        language: its code.
        confidence: how probable it is, 0 to 1.
    """

    language: str
    confidence: float


class CandidateLanguages(NamedTuple):
    """The languages that are possible for the texts of a request.

    Attributes:
        expected: languages that are likely.
        others: further languages that are possible.
    """

    expected: tuple[str, ...]
    others: tuple[str, ...]

    @classmethod
    def of(cls, sources: Sequence[str], served: Collection[str]) -> Self:
        """Collect the possible languages of a request.

        Args:
            served: all languages that models read or write.
        """
        return cls(tuple(sources), (*sorted(set(served) - set(sources)), *COMMON))


class Detector(Protocol):
    """Estimates how probable languages are; loads its data at the first use. For any thread."""

    @property
    def is_loaded(self) -> bool:
        """Whether the data have been loaded."""

    def load(self) -> None:
        """Load the data; does nothing where they have been loaded."""

    def rank(self, text: str, candidates: CandidateLanguages, *, html: bool = False) -> list[Guess]:
        """Estimate which languages a text may be in.

        Args:
            text: of any length; only its beginning is looked at.
            html: whether it is HTML.

        Returns:
            All of the languages that the detector knows, the most probable first; none where the text does not tell.
        """


def new_detector() -> Detector:
    """Make a detector; raises InvalidRequestError without a plugin."""
    detector: Detector = plugins.needed(plugins.DETECTION, "detects no languages")()
    return detector


def agree(rankings: Sequence[Sequence[Guess]], lengths: Sequence[int]) -> list[Guess | None]:
    """Choose the languages of a call's texts together: a short text is more probably in the language of the others.

    Returns:
        The language of each text, with the confidence by this text alone; None for a text that does not tell.
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


def most_frequent(guesses: Iterable[Guess | None], among: Collection[str], default: str) -> str:
    """Give the most frequent language among some, of equally frequent ones the first; `default` where none is found."""
    found = [guess.language for guess in guesses if guess is not None and guess.language in among]
    return max(dict.fromkeys(found), key=found.count, default=default)
