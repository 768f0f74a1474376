"""Finished translations, kept: a decode that has been done is not done again; lives on the event loop."""

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple

from service.constraints import Form, Term
from service.decode import Attention, Decode, DecodeStatus, FinishReason, Hypothesis
from service.lru import LruStore
from service.options import Decoding
from service.segment import Segment
from service.telemetry.metrics import ModelMetrics

# The ends that would be the same if it were decoded again.
_LASTING: Final = (FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION)
# What an entry takes besides its ids and its key's: objects, and their place in the store. Measured: 528, and 552
# with a log-probability.
_ENTRY_BYTES: Final = 576
# What a hypothesis takes besides its ids: objects. Measured: 226.
_HYPOTHESIS_BYTES: Final = 256
# What the attention of a token takes besides its numbers: an object, and its place in lists.
_ROW_BYTES: Final = 144
# What a form of a term takes in a key, and each of its tokens: objects.
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
    terms: tuple[Term, ...]  # of the constraints, of which all else is the same in the whole bundle, but ...
    at_most: tuple[tuple[Form, int], ...]

    @classmethod
    def of(cls, segment: Segment) -> "Key":
        """Make the key of what a segment asks for."""
        constraints = segment.constraints
        return cls(
            _bytes(segment.source_ids),
            segment.start_ids,
            _bytes(segment.prefix_ids) if segment.prefix_ids else b"",
            _bytes(segment.scored_ids) if segment.scored_ids else b"",
            segment.max_target_tokens,
            segment.options.decoding,
            constraints.terms if constraints else (),
            constraints.at_most if constraints else (),
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of its ids, and of the forms of its constraints."""
        ids_bytes = len(self.source_ids) + len(self.prefix_ids) + len(self.scored_ids)
        if not (self.terms or self.at_most):
            return ids_bytes
        forms = [form for term in self.terms for form in term] + [form for form, _ in self.at_most]
        return ids_bytes + _FORM_BYTES * len(forms) + _FORM_TOKEN_BYTES * sum(map(len, forms))


class Result(NamedTuple):
    """The outcome of a decode.

    Attributes:
        target_ids: of the translation.
        log_probability: of it.
        finish_reason: why it ended.
        engine_s: seconds from its being taken by an engine thread to its end.
        hypotheses: see :class:`Decode`.
        attention: see :class:`Decode`.
        token_log_probabilities: see :class:`Decode`.
    """

    target_ids: "array[int]"  # quoted: Python 3.11 has no array[int]
    log_probability: float
    finish_reason: FinishReason
    engine_s: float
    hypotheses: tuple[Hypothesis, ...] = ()
    attention: Sequence[Attention] = ()
    token_log_probabilities: Sequence[float] = ()

    @classmethod
    def of(cls, decode: Decode) -> "Result":
        """Make the result of a decode that has ended in a way that lasts."""
        assert decode.finish_reason is not None, "it has ended without an error"
        return cls(
            array("i", decode.target_ids),
            decode.log_probability,
            decode.finish_reason,
            engine_s(decode),
            tuple([each._replace(target_ids=array("i", each.target_ids)) for each in decode.hypotheses]),
            tuple(decode.attention),
            array("d", decode.token_log_probabilities) if decode.token_log_probabilities else (),
        )

    @property
    def size_bytes(self) -> int:
        """Bytes of its ids and their log-probabilities, and of what stands around those of hypotheses."""
        tokens = len(self.target_ids) + sum([len(each.target_ids) for each in self.hypotheses])
        rows = [row for rows in (self.attention, *[each.attention for each in self.hypotheses]) for row in rows]
        return (
            self.target_ids.itemsize * tokens
            + _SCORE_BYTES * len(self.token_log_probabilities)
            + _HYPOTHESIS_BYTES * len(self.hypotheses)
            # Hypotheses share the rows of what they have in common: an object is counted once.
            + sum({id(row): row.nbytes + _ROW_BYTES for row in rows}.values())
        )

    def decode(self, segment: Segment, now_s: float) -> Decode:
        """Make a decode of a segment that has ended so."""
        return Decode(
            segment.source_ids,
            segment.max_target_tokens,
            decoding=segment.options.decoding,
            start_ids=segment.start_ids,
            prefix_ids=segment.prefix_ids,
            constraints=segment.constraints,
            scored_ids=segment.scored_ids,
            target_ids=self.target_ids.tolist(),
            log_probability=self.log_probability,
            attention=list(self.attention),
            token_log_probabilities=list(self.token_log_probabilities),
            hypotheses=self.hypotheses,
            status=DecodeStatus.FINISHED,
            finish_reason=self.finish_reason,
            admitted_s=now_s,
            encoded_s=now_s,
            first_token_s=now_s,
            finished_s=now_s,
        )


class ResultCache:
    """Results of one bundle, bounded in bytes, the least recently used forgotten first.

    Neither errors nor draws are kept: hardly anybody gives the seed of a draw again.
    """

    def __init__(self, limit_bytes: int, metrics: ModelMetrics) -> None:
        """Make an empty cache.

        Args:
            limit_bytes: what the results may take, keys and books counted; 0: none is kept.
        """
        self._store: LruStore[Key, Result] = LruStore(limit_bytes)
        self._metrics = metrics

    @property
    def size_bytes(self) -> int:
        """Bytes of the results that are kept."""
        return self._store.size_bytes

    def find(self, key: Key) -> Result | None:
        """Look a result up; None where it is not known."""
        return self._store.get(key)

    def keep(self, key: Key, decode: Decode) -> None:
        """Remember how a decode ended, if it would end so again."""
        if decode.finish_reason not in _LASTING or key.decoding.sampling is not None:
            return
        result = Result.of(decode)
        size_bytes = key.size_bytes + result.size_bytes + _ENTRY_BYTES
        before_bytes = self._store.size_bytes
        self._store.put(key, result, size_bytes)
        self._metrics.result_cache_bytes.inc(self._store.size_bytes - before_bytes)

    def count(self, hits: Sequence[Result], missed: Sequence[Key]) -> None:
        """Enter lookups in the metrics."""
        # Most calls are of one kind: a count of 0 would take as long as another.
        if hits:
            self._metrics.result_cache_hits_total.inc(len(hits))
            self._metrics.result_cache_saved_seconds_total.inc(sum([result.engine_s for result in hits]))
        misses = sum([key.decoding.sampling is None for key in missed]) if self._store.limit_bytes else 0
        if misses:
            self._metrics.result_cache_misses_total.inc(misses)

    def clear(self) -> None:
        """Forget all results."""
        self._metrics.result_cache_bytes.dec(self._store.size_bytes)
        self._store = LruStore(self._store.limit_bytes)


def _bytes(ids: Sequence[int]) -> bytes:
    """Keep ids in 4 bytes each: an int of its own takes 36."""
    return array("i", ids).tobytes()


def engine_s(decode: Decode) -> float:
    """Measure the seconds from its being taken to its end; 0 where there is no such time."""
    if decode.admitted_s is None or decode.finished_s is None:
        return 0.0
    return decode.finished_s - decode.admitted_s
