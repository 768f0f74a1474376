"""The options of a call for all its texts, with its client."""

import enum
from typing import Final, NamedTuple

from service.terms import Terms

MAX_BEAM_SIZE: Final = 16
TERMS_BEAM_SIZE: Final = 4  # at least, where a translation has to hold terms
DEFAULT_LENGTH_PENALTY: Final = 1.0
MAX_LENGTH_PENALTY: Final = 10.0  # and, negated, the least
DEFAULT_TEMPERATURE: Final = 1.0
# At this value, of two tokens whose logits differ by one, the less probable token is drawn once in 10^43 times.
MIN_TEMPERATURE: Final = 0.01
MAX_TEMPERATURE: Final = 10.0
DEFAULT_TOP_P: Final = 1.0
SEED_BITS: Final = 32


class Priority(enum.IntEnum):
    """The priority of a request in the queue; the smaller value goes first."""

    INTERACTIVE = 0
    BULK = 1


class Sampling(NamedTuple):
    """How the tokens of a segment are sampled; see `plugins.sampling`.

    Attributes:
        seed: seed of the random numbers of its text, of `SEED_BITS` bits.
        temperature: divides the logits, `MIN_TEMPERATURE` to `MAX_TEMPERATURE`.
        top_k: number of the most probable tokens from which a token is drawn; 0: all.
        top_p: a token is drawn from the fewest most probable tokens with this total probability, above 0, at most 1.
        segment: number of the segment in its text: each segment has its own random numbers.
    """

    seed: int
    temperature: float = DEFAULT_TEMPERATURE
    top_k: int = 0
    top_p: float = DEFAULT_TOP_P
    segment: int = 0


class Decoding(NamedTuple):
    """The options that change the result of a segment: segments with the same ids, limit and `Decoding` share a result.

    Attributes:
        stops_at_repetition: whether a segment that repeats itself is stopped, with REPETITION.
        wants_log_probability: whether log-probabilities are added up; it takes time at every step of a greedy decode.
        beam_size: hypotheses that are kept at each step; 1: greedy decoding.
        length_penalty: a hypothesis' log-probability is divided by this power of its length.
        alternatives: number of wanted hypotheses, the best ones; at most `beam_size`.
        wants_attention: whether the attention of each token of the translation over the source is kept.
        sampling: how tokens are sampled, with a beam of 1; None: they are not.
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

        A beam of 1 has only one hypothesis, so it needs no length penalty. One alternative is the translation itself:
        it only needs the log-probability, which a larger beam computes anyway.

        Args:
            alternatives: number of wanted alternatives of the segment, at most `beam_size`.
            log_probability: whether the log-probability is wanted, too.
        """
        if beam_size == 1:
            return cls(wants_log_probability=log_probability or alternatives > 0, sampling=sampling)
        return cls(
            wants_log_probability=True,
            beam_size=beam_size,
            length_penalty=length_penalty,
            alternatives=alternatives if alternatives > 1 else 0,
        )

    def with_terms(self, slots: int, length_penalty: float) -> "Decoding":
        """Give the options of a segment whose translation has to hold terms, with a beam that is wide enough.

        Args:
            slots: most hypotheses that may be kept, from 2.
            length_penalty: that of the request, which a beam of 1 does not have.
        """
        beam_size = max(self.beam_size, min(TERMS_BEAM_SIZE, slots))
        return self._replace(wants_log_probability=True, beam_size=beam_size, length_penalty=length_penalty)

    def score(self, log_probability: float, tokens: int) -> float:
        """Compute the score of a hypothesis.

        Args:
            log_probability: the sum over its tokens.
            tokens: number of its tokens, from 1; the end-of-sentence token and the first tokens that are given count.
        """
        return float(log_probability / tokens**self.length_penalty)


DEFAULT_DECODING: Final = Decoding()
SCORING: Final = Decoding(wants_log_probability=True)  # for a given translation


class XmlTags(NamedTuple):
    """The meaning of XML elements, by their names; the tags of all other elements are inside a sentence.

    Attributes:
        splitting: elements whose tags end a sentence.
        kept: elements that stay as they are, with all of their content.
    """

    splitting: frozenset[str] = frozenset()
    kept: frozenset[str] = frozenset()


class RequestOptions(NamedTuple):
    """The options that are the same for all segments of a call; made once, from its first message.

    Attributes:
        decoding: how segments are decoded; the server decides whether they stop at a repetition.
        length_penalty: that of segments whose translation has to hold terms, also where the others have a beam of 1.
        max_target_tokens: most target tokens of each segment, below its limit; None or 0: its limit.
        deadline_s: deadline of the call, on the clock of `time.monotonic`; None: there is none.
        wants_deltas: whether progress is told after each step too.
        client: the client of the call: clients are served in turn.
        priority: priority of the segments in the queue.
        source_language: the model's code for the language of the texts; "": not told, or the only one.
        target_language: likewise, for the translations.
        has_tags: whether the texts are HTML or XML, whose tags are kept.
        xml: the meaning of the tags of XML; None: the texts are no XML.
        all_or_nothing: whether a text that cannot be translated ends the call.
        alternatives: number of the best translations of each text that are wanted; the first is the translation.
        mean_log_probability: whether the mean log-probability of each text is wanted.
        alignments: whether the links between words of each text and its translation are wanted.
        quality_estimate: whether the probability that a reader accepts each translation is wanted.
        prefix_ids: ids of the first tokens of each translation.
        terms: terms that have given translations; None: there are none.
    """

    decoding: Decoding = DEFAULT_DECODING
    length_penalty: float = DEFAULT_LENGTH_PENALTY
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
