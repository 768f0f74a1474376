"""What a call asks of the translation of all its texts, and for whom."""

import enum
from typing import Final, NamedTuple

MAX_BEAM_SIZE: Final = 16
DEFAULT_LENGTH_PENALTY: Final = 1.0
MAX_LENGTH_PENALTY: Final = 10.0  # and, negated, the least


class Priority(enum.IntEnum):
    """Who goes first where many wait; the smaller, the sooner."""

    INTERACTIVE = 0
    BULK = 1


class Decoding(NamedTuple):
    """The options that change the result of a segment: segments of the same ids, limit and `Decoding` share one.

    Attributes:
        stops_at_repetition: whether a segment that repeats itself is stopped, with REPETITION.
        wants_log_probability: whether log-probabilities are added up; it takes time at every step of a greedy decode.
        beam_size: hypotheses that are kept at each step; 1: greedy decoding.
        length_penalty: the power of the length that a hypothesis' log-probability is divided by.
        alternatives: of the hypotheses, how many are wanted, the best first; at most `beam_size`.
        wants_attention: whether it is kept how much each token of the translation looked at those of the source.
    """

    stops_at_repetition: bool = False
    wants_log_probability: bool = False
    beam_size: int = 1
    length_penalty: float = DEFAULT_LENGTH_PENALTY
    alternatives: int = 0
    wants_attention: bool = False

    @classmethod
    def of(
        cls,
        *,
        beam_size: int = 1,
        length_penalty: float = DEFAULT_LENGTH_PENALTY,
        alternatives: int = 0,
        log_probability: bool = False,
    ) -> "Decoding":
        """Make the one form of all options that give a segment the same result.

        A beam of 1 chooses between nothing, so it has no length penalty. One alternative is the translation itself, so
        only its log-probability is needed besides, which a larger beam adds up anyway.

        Args:
            beam_size: hypotheses that are kept at each step, from 1.
            length_penalty: see the attribute.
            alternatives: that are wanted of the segment, at most `beam_size`.
            log_probability: whether the log-probability is wanted, too.
        """
        if beam_size == 1:
            return cls(wants_log_probability=log_probability or alternatives > 0)
        return cls(
            wants_log_probability=True,
            beam_size=beam_size,
            length_penalty=length_penalty,
            alternatives=alternatives if alternatives > 1 else 0,
        )

    def score(self, log_probability: float, tokens: int) -> float:
        """Compute the score of a hypothesis.

        Args:
            log_probability: the sum of those of its tokens.
            tokens: how many they are, from 1: the end-of-sentence token counts, and those that it has to begin with.
        """
        return float(log_probability / tokens**self.length_penalty)


def beam_size_of(asked: int, alternatives: int, default: int) -> int:
    """Choose the size of a beam: where none is asked for, the default one, or as many as alternatives are wanted.

    Args:
        asked: 0: none.
        alternatives: that are wanted.
        default: of the server, from 1.
    """
    return asked or max(default, alternatives)


DEFAULT_DECODING: Final = Decoding()


class RequestOptions(NamedTuple):
    """The same for all segments of a call; made once, of its first message.

    Attributes:
        decoding: how segments are decoded; whether they stop at a repetition, the server says.
        max_target_tokens: of each segment, below its limit; None or 0: its limit.
        deadline_s: when the answer is of no more use, on the clock of `time.monotonic`; None: never.
        wants_deltas: whether progress is told after each step too.
        client: who asks: clients are served in turn.
        priority: among all that wait.
        source_language: that the model knows the texts' language by; "": not told, or the only one.
        target_language: likewise.
        html: whether the texts are HTML, whose tags are kept.
        all_or_nothing: whether a text that cannot be translated ends the call.
        alternatives: how many of the best translations of each text are wanted, itself being the first.
        mean_log_probability: whether the mean log-probability of each text is told.
        prefix_ids: what the translation of each text begins with.
    """

    decoding: Decoding = DEFAULT_DECODING
    max_target_tokens: int | None = None
    deadline_s: float | None = None
    wants_deltas: bool = False
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    source_language: str = ""
    target_language: str = ""
    html: bool = False
    all_or_nothing: bool = False
    alternatives: int = 0
    mean_log_probability: bool = False
    prefix_ids: tuple[int, ...] = ()
