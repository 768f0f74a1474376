"""What a call asks of the translation of all its texts, and for whom."""

import enum
from typing import Final, NamedTuple

from service.terms import Terms

MAX_BEAM_SIZE: Final = 16
TERMS_BEAM_SIZE: Final = 4  # at least, where terms are to stand in a translation
DEFAULT_LENGTH_PENALTY: Final = 1.0
MAX_LENGTH_PENALTY: Final = 10.0  # and, negated, the least
DEFAULT_TEMPERATURE: Final = 1.0
# Below it, of two tokens whose logits differ by one, the less probable is drawn once in 10^43 times.
MIN_TEMPERATURE: Final = 0.01
MAX_TEMPERATURE: Final = 10.0
DEFAULT_TOP_P: Final = 1.0
SEED_BITS: Final = 32


class Priority(enum.IntEnum):
    """Who goes first where many wait; the smaller, the sooner."""

    INTERACTIVE = 0
    BULK = 1


class Sampling(NamedTuple):
    """How the tokens of a segment are drawn; see `decoding.sampling`.

    Attributes:
        seed: where the random numbers of its text begin, of `SEED_BITS` bits.
        temperature: what logits are divided by, `MIN_TEMPERATURE` to `MAX_TEMPERATURE`.
        top_k: of how many of the most probable tokens one is drawn; 0: of all.
        top_p: of the most probable tokens one is drawn, as many as have this probability together, over 0 to 1.
        segment: its place among the segments of its text: each has random numbers of its own.
    """

    seed: int
    temperature: float = DEFAULT_TEMPERATURE
    top_k: int = 0
    top_p: float = DEFAULT_TOP_P
    segment: int = 0


class Decoding(NamedTuple):
    """The options that change the result of a segment: segments of the same ids, limit and `Decoding` share one.

    Attributes:
        stops_at_repetition: whether a segment that repeats itself is stopped, with REPETITION.
        wants_log_probability: whether log-probabilities are added up; it takes time at every step of a greedy decode.
        beam_size: hypotheses that are kept at each step; 1: greedy decoding.
        length_penalty: the power of the length that a hypothesis' log-probability is divided by.
        alternatives: of the hypotheses, how many are wanted, the best first; at most `beam_size`.
        wants_attention: whether it is kept how much each token of the translation looked at those of the source.
        sampling: how tokens are drawn, with a beam of 1; None: they are not.
    """

    stops_at_repetition: bool = False
    wants_log_probability: bool = False
    beam_size: int = 1
    length_penalty: float = DEFAULT_LENGTH_PENALTY
    alternatives: int = 0
    wants_attention: bool = False
    sampling: Sampling | None = None

    @classmethod
    def of(
        cls,
        *,
        beam_size: int = 1,
        length_penalty: float = DEFAULT_LENGTH_PENALTY,
        alternatives: int = 0,
        log_probability: bool = False,
        sampling: Sampling | None = None,
    ) -> "Decoding":
        """Make the one form of all options that give a segment the same result.

        A beam of 1 chooses between nothing, so it has no length penalty. One alternative is the translation itself, so
        only its log-probability is needed besides, which a larger beam adds up anyway.

        Args:
            beam_size: hypotheses that are kept at each step, from 1.
            alternatives: that are wanted of the segment, at most `beam_size`.
            log_probability: whether the log-probability is wanted, too.
            sampling: how tokens are drawn, with a beam of 1; None: they are not.
        """
        if beam_size == 1:
            return cls(wants_log_probability=log_probability or alternatives > 0, sampling=sampling)
        return cls(
            wants_log_probability=True,
            beam_size=beam_size,
            length_penalty=length_penalty,
            alternatives=alternatives if alternatives > 1 else 0,
        )

    def with_terms(self, slots: int) -> "Decoding":
        """Give the options of a segment whose translation is to hold terms: its beam is wide enough.

        Args:
            slots: how many hypotheses may be kept, from 2.
        """
        beam_size = max(self.beam_size, min(TERMS_BEAM_SIZE, slots))
        return self._replace(wants_log_probability=True, beam_size=beam_size)

    def score(self, log_probability: float, tokens: int) -> float:
        """Compute the score of a hypothesis.

        Args:
            log_probability: the sum of those of its tokens.
            tokens: how many they are, from 1: the end-of-sentence token counts, and those that it has to begin with.
        """
        return float(log_probability / tokens**self.length_penalty)


DEFAULT_DECODING: Final = Decoding()
SCORING: Final = Decoding(wants_log_probability=True)  # of a translation that is given


class XmlTags(NamedTuple):
    """What elements of XML mean, by their names; tags of all others are inside a sentence.

    Attributes:
        splitting: their tags end a sentence.
        kept: they stay as they are, with all that is inside.
    """

    splitting: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


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
        has_tags: whether the texts are HTML or XML, whose tags are kept.
        xml: what the tags of XML mean; None: the texts are none.
        all_or_nothing: whether a text that cannot be translated ends the call.
        alternatives: how many of the best translations of each text are wanted, itself being the first.
        mean_log_probability: whether the mean log-probability of each text is told.
        alignments: whether it is told which words of each text became which.
        quality_estimate: whether it is told how probable it is that a reader accepts each translation.
        prefix_ids: what the translation of each text begins with.
        terms: that are to have given translations; None: there are none.
    """

    decoding: Decoding = DEFAULT_DECODING
    max_target_tokens: int | None = None
    deadline_s: float | None = None
    wants_deltas: bool = False
    client: str = ""
    priority: Priority = Priority.INTERACTIVE
    source_language: str = ""
    target_language: str = ""
    has_tags: bool = False
    xml: XmlTags | None = None
    all_or_nothing: bool = False
    alternatives: int = 0
    mean_log_probability: bool = False
    alignments: bool = False
    quality_estimate: bool = False
    prefix_ids: tuple[int, ...] = ()
    terms: Terms | None = None
