"""The cache of finished translations: an equal decode is not done again; lives on the event loop."""

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from service.constraints import Form, Term
from service.decode import Attention, Decode, FinishReason, Hypothesis
from service.lru import LruStore
from service.options import Decoding
from service.telemetry.metrics import ModelMetrics

# The reasons that an equal decode would end for, too.
_LASTING: Final = (FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION)
# Bytes of an entry besides its ids and its key's ids: objects, and their place in the store. Measured: 528, and 552
# with a log-probability.
_ENTRY_BYTES: Final = 576
# Bytes of a hypothesis besides its ids: objects. Measured: 226.
_HYPOTHESIS_BYTES: Final = 256
# Bytes of the attention of a token besides its numbers: an object, and its place in lists.
_ROW_BYTES: Final = 144
# Bytes of a form of a term in a key, and of each of its tokens: objects.
_FORM_BYTES: Final = 128
_FORM_TOKEN_BYTES: Final = 40
_SCORE_BYTES: Final = 8  # of a token


class Key(NamedTuple):
    """All that the outcome of a decode depends on, within one bundle."""

    source_ids: bytes
    start_ids: tuple[int, ...]
    prefix_ids: bytes
    scored_ids: bytes
    max_target_tokens: int
    decoding: Decoding
    terms: tuple[Term, ...]  # of the constraints, as `at_most`; all else in them is the same in one bundle
    at_most: tuple[tuple[Form, int], ...]

    @classmethod
    def of(cls, decode: Decode) -> "Key":
        """Make the key of a decode."""
        constraints = decode.constraints
        return cls(
            array("i", decode.source_ids).tobytes(),  # an int object takes 36 bytes
            decode.start_ids,
            array("i", decode.prefix_ids).tobytes() if decode.prefix_ids else b"",
            array("i", decode.scored_ids).tobytes() if decode.scored_ids else b"",
            decode.max_target_tokens,
            decode.decoding,
            constraints.terms if constraints else (),
            constraints.at_most if constraints else (),
        )


class Result(NamedTuple):
    """The outcome of a decode; its attributes are those of :class:`Decode`."""

    target_ids: "array[int]"  # quoted: Python 3.11 has no array[int]
    log_probability: float
    finish_reason: FinishReason
    engine_s: float
    hypotheses: tuple[Hypothesis, ...] = ()
    attention: Sequence[Attention] = ()
    token_log_probabilities: Sequence[float] = ()

    @classmethod
    def of(cls, decode: Decode) -> "Result":
        """Make the result of a decode that has ended for one of the reasons in `_LASTING`."""
        assert decode.finish_reason is not None, "it has ended without an error"
        return cls(
            array("i", decode.target_ids),
            decode.log_probability,
            decode.finish_reason,
            decode.engine_s,
            tuple([each._replace(target_ids=array("i", each.target_ids)) for each in decode.hypotheses]),
            tuple(decode.attention),
            array("d", decode.token_log_probabilities) if decode.token_log_probabilities else (),
        )

    def end(self, decode: Decode, now_s: float) -> None:
        """End an equal decode, which has not begun, with this result."""
        decode.target_ids = self.target_ids.tolist()
        decode.log_probability = self.log_probability
        decode.attention = list(self.attention)
        decode.token_log_probabilities = list(self.token_log_probabilities)
        decode.hypotheses = self.hypotheses
        decode.admitted_s = decode.encoded_s = decode.first_token_s = now_s
        decode.finish(self.finish_reason, now_s)


class ResultCache(LruStore[Key, Result]):
    """Results of one bundle, bounded in bytes.

    Neither errors nor sampled translations are kept: the seed of a sample is hardly ever sent again.
    """

    def __init__(self, limit_bytes: int, metrics: ModelMetrics) -> None:
        super().__init__(limit_bytes, metrics.result_cache_bytes.inc)
        self._metrics = metrics

    def keep(self, key: Key, decode: Decode) -> None:
        """Keep the result of a decode, if an equal decode would end in the same way."""
        if not self.limit_bytes or decode.finish_reason not in _LASTING or key.decoding.sampling is not None:
            return
        result = Result.of(decode)
        self.put(key, result, size_bytes(key, result))

    def count(self, hits: Sequence[Result], missed: Sequence[Key]) -> None:
        """Enter lookups in the metrics."""
        # Most calls have only hits or only misses: a count of 0 would take as long as any other.
        if hits:
            self._metrics.result_cache_hits_total.inc(len(hits))
            self._metrics.result_cache_saved_seconds_total.inc(sum([result.engine_s for result in hits]))
        misses = sum([key.decoding.sampling is None for key in missed]) if self.limit_bytes else 0
        if misses:
            self._metrics.result_cache_misses_total.inc(misses)


def size_bytes(key: Key, result: Result) -> int:
    """Estimate the bytes of an entry: of its ids and numbers, and of the objects around them."""
    ids_bytes = len(key.source_ids) + len(key.prefix_ids) + len(key.scored_ids)
    forms = [form for term in key.terms for form in term] + [form for form, _ in key.at_most]
    tokens = len(result.target_ids) + sum([len(each.target_ids) for each in result.hypotheses])
    rows = [row for rows in (result.attention, *[each.attention for each in result.hypotheses]) for row in rows]
    return (
        _ENTRY_BYTES
        + ids_bytes
        + _FORM_BYTES * len(forms)
        + _FORM_TOKEN_BYTES * sum(map(len, forms))
        + result.target_ids.itemsize * tokens
        + _SCORE_BYTES * len(result.token_log_probabilities)
        + _HYPOTHESIS_BYTES * len(result.hypotheses)
        # Hypotheses share the attention of their common tokens: each object is counted once.
        + sum({id(row): row.nbytes + _ROW_BYTES for row in rows}.values())
    )
