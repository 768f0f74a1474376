"""The cache of encoder memories alone, and before the encoder of the synthetic model."""

import threading
import tracemalloc
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.engine.encoder_cache import CachingEncoder, EncoderMemory, EncoderMemoryCache
from service.runtime.host import EncoderSession
from service.runtime.interfaces import Memory
from service.telemetry.metrics import Metrics
from tests.engine_harness import look_up_or_encode
from tests.synthetic import Synthetic

pytestmark = pytest.mark.torch

WIDTH = 16
PLENTY = 1_000_000


def memory_of(source: Sequence[int]) -> EncoderMemory:
    """A view into a larger array, as an encoder gives it; its numbers are the source's."""
    batch = np.zeros((3, len(source) + 2, WIDTH), np.float32)
    batch[1, : len(source)] = np.array(source)[:, None]
    return EncoderMemory(batch[1, : len(source)], 0.001 * len(source))


def cache_of(limit_bytes: int) -> tuple[EncoderMemoryCache, Metrics]:
    metrics = Metrics()
    return EncoderMemoryCache(limit_bytes, metrics.of("en-de")), metrics


def value(metrics: Metrics, name: str) -> float | None:
    return metrics.total(f"encoder_memory_cache_{name}")


def test_what_is_kept_is_found_and_nothing_else() -> None:
    cache, _ = cache_of(PLENTY)
    first, second = cache.key([3, 4]), cache.key([3, 4, 5])
    cache.keep({first: memory_of([3, 4])})
    assert list(cache.find([first, second])) == [first]
    np.testing.assert_array_equal(cache.find([first])[first].values, memory_of([3, 4]).values)


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4)))
def test_different_sources_have_different_keys(sources: list[list[int]]) -> None:
    keys = {EncoderMemoryCache.key(source) for source in sources}
    assert len(keys) == len(set(map(tuple, sources)))


def test_a_kept_memory_is_a_copy_that_nobody_can_write() -> None:
    cache, _ = cache_of(PLENTY)
    key, memory = cache.key([7, 8]), memory_of([7, 8])
    cache.keep({key: memory})
    memory.values[:] = -1
    kept = cache.find([key])[key].values
    assert kept.base is None, "a view would keep its whole batch alive"
    assert kept.min() == 7
    with pytest.raises(ValueError, match="read-only"):
        kept[:] = 0


@given(limit_bytes=st.integers(0, 6_000), rounds=st.lists(st.sets(st.integers(1, 9), max_size=3), max_size=30))
def test_bytes_stay_within_the_limit_and_the_metrics_say_them(limit_bytes: int, rounds: list[set[int]]) -> None:
    cache, metrics = cache_of(limit_bytes)
    everything = {cache.key(range(length)): memory_of(range(length)) for length in range(1, 10)}
    for lengths in rounds:
        keys = [cache.key(range(length)) for length in lengths]
        cache.keep({key: everything[key] for key in keys})
        held = cache.find(everything)
        assert sum(memory.values.nbytes for memory in held.values()) <= cache.size_bytes <= limit_bytes
        assert value(metrics, "bytes") == cache.size_bytes
        for key, memory in held.items():
            np.testing.assert_array_equal(memory.values, everything[key].values)


def test_the_least_recently_used_is_forgotten_and_counted() -> None:
    one_entry = 2 * WIDTH * 4 + 8 + 512
    cache, metrics = cache_of(2 * one_entry)
    keys = [cache.key([source, 2]) for source in (10, 11, 12)]
    cache.keep({keys[0]: memory_of([10, 2])})
    cache.keep({keys[1]: memory_of([11, 2])})
    cache.find([keys[0]])
    cache.keep({keys[2]: memory_of([12, 2])})
    assert set(cache.find(keys)) == {keys[0], keys[2]}
    assert value(metrics, "evictions_total") == 1


def test_the_books_count_at_least_what_the_interpreter_does() -> None:
    cache, _ = cache_of(100_000_000)
    tracemalloc.start()
    try:
        before_bytes, _ = tracemalloc.get_traced_memory()
        for first in range(300, 2_300):
            cache.keep({cache.key([first, 2]): memory_of([first, 2])})
        held_bytes = tracemalloc.get_traced_memory()[0] - before_bytes
    finally:
        tracemalloc.stop()
    assert 0.7 * cache.size_bytes < held_bytes <= cache.size_bytes


def test_threads_find_what_was_kept_whole_and_the_books_agree() -> None:
    cache, metrics = cache_of(20_000)
    faults: list[object] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(300):
            sources = [tuple(range(length)) for length in random.integers(1, 30, size=3)]
            found = cache.find([cache.key(source) for source in sources])
            for source in sources:
                memory = found.get(cache.key(source))
                if memory is not None and not np.array_equal(memory.values, memory_of(source).values):
                    faults.append(source)
            cache.keep({cache.key(source): memory_of(source) for source in sources})

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert value(metrics, "bytes") == cache.size_bytes <= 20_000


class Subject(NamedTuple):
    """A remembering encoder, and what tells of it."""

    encoder: CachingEncoder
    cache: EncoderMemoryCache
    metrics: Metrics
    plain: EncoderSession

    def counts(self) -> tuple[float | None, float | None, float | None]:
        """Hits, misses, runs of the encoder."""
        runs = self.metrics.total("encode_duration_seconds_count")
        return value(self.metrics, "hits_total"), value(self.metrics, "misses_total"), runs


@pytest.fixture(scope="module", params=["fp32", "int8"])
def session(request: pytest.FixtureRequest) -> EncoderSession:
    synthetic: Synthetic = request.getfixturevalue(request.param)
    return EncoderSession(synthetic.bundle)


@pytest.fixture
def subject(session: EncoderSession) -> Subject:
    cache, metrics = cache_of(PLENTY)
    return Subject(CachingEncoder(session.encode, cache, metrics.of("en-de")), cache, metrics, session)


SOURCES = [[5, 6, 2], [7, 2], [5, 6, 2], [8, 9, 10, 11, 2]]


def test_a_known_source_does_not_run(subject: Subject) -> None:
    first = look_up_or_encode(subject.encoder, SOURCES[:2])
    assert subject.counts() == (0, 2, 1)
    second = look_up_or_encode(subject.encoder, SOURCES[:2])
    assert subject.counts() == (2, 2, 1)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_equal_sources_run_once(subject: Subject) -> None:
    memories = look_up_or_encode(subject.encoder, SOURCES)
    assert subject.counts() == (1, 3, 1)
    np.testing.assert_array_equal(memories[0], memories[2])
    assert subject.metrics.total("source_tokens_total") == 3 + 2 + 5


def test_source_tokens_are_those_that_the_encoder_read(subject: Subject) -> None:
    look_up_or_encode(subject.encoder, SOURCES)
    look_up_or_encode(subject.encoder, [*SOURCES, [9, 2]])
    assert subject.metrics.total("source_tokens_total") == 3 + 2 + 5 + 2


def test_padding_is_what_a_run_computes_beside_its_tokens(subject: Subject) -> None:
    look_up_or_encode(subject.encoder, SOURCES)  # runs of 3, 2 and 5 tokens, each filled up to 5
    assert subject.metrics.total("encoder_padding_tokens_total") == 2 + 3
    look_up_or_encode(subject.encoder, [[9, 2]])
    assert subject.metrics.total("encoder_padding_tokens_total") == 2 + 3


def test_unknown_pieces_are_counted_where_they_are_encoded(session: EncoderSession) -> None:
    cache, metrics = cache_of(PLENTY)
    encoder = CachingEncoder(session.encode, cache, metrics.of("en-de"), unknown_id=3)
    for _ in range(2):  # the second time nothing is encoded
        look_up_or_encode(encoder, [[3, 3, 2], [5, 3, 2], [5, 2]])
    assert metrics.total("unknown_pieces_total", model="en-de") == 3


@given(data=st.data())
def test_found_or_made_a_memory_is_bit_for_bit_the_same(session: EncoderSession, data: st.DataObject) -> None:
    cache, metrics = cache_of(data.draw(st.sampled_from([3_000, PLENTY])))
    encoder = CachingEncoder(session.encode, cache, metrics.of("en-de"))
    source = st.lists(st.integers(3, 6), max_size=5).map(lambda ids: [*ids, 2])
    for sources in data.draw(st.lists(st.lists(source, min_size=1, max_size=5), max_size=5)):
        for ids, memory in zip(sources, look_up_or_encode(encoder, sources), strict=True):
            [alone] = session.encode([ids])
            np.testing.assert_array_equal(memory, alone)


def test_hits_save_what_the_run_took(subject: Subject) -> None:
    look_up_or_encode(subject.encoder, SOURCES[:2])
    run_s = subject.metrics.total("encode_duration_seconds_sum")
    assert value(subject.metrics, "saved_seconds_total") == 0
    look_up_or_encode(subject.encoder, [SOURCES[0]])
    assert value(subject.metrics, "saved_seconds_total") == pytest.approx(run_s * 3 / 5)


def test_without_room_nothing_is_remembered_or_counted(session: EncoderSession) -> None:
    cache, metrics = cache_of(0)
    subject = Subject(CachingEncoder(session.encode, cache, metrics.of("en-de")), cache, metrics, session)
    for _ in range(2):
        look_up_or_encode(subject.encoder, SOURCES[:2])
    assert subject.counts() == (0, 0, 2)
    assert cache.size_bytes == 0


def test_a_run_that_fails_leaves_nothing(subject: Subject) -> None:
    look_up_or_encode(subject.encoder, [[5, 2]])
    before_bytes = subject.cache.size_bytes
    with pytest.raises(Exception, match=r"(?i)indices|bounds|gather"):
        look_up_or_encode(subject.encoder, [[6, 2], [1_000_000, 2]])
    assert subject.cache.size_bytes == before_bytes
    assert subject.cache.find([subject.cache.key([6, 2])]) == {}


def test_a_source_on_which_the_encoder_fails_is_not_kept_and_the_others_are(session: EncoderSession) -> None:
    cache, metrics = cache_of(PLENTY)

    def fails_on_six(sources: Sequence[Sequence[int]]) -> list[Memory | None]:
        return [None if ids[0] == 6 else memory for ids, memory in zip(sources, session.encode(sources), strict=True)]

    encoder = CachingEncoder(fails_on_six, cache, metrics.of("en-de"))
    sources = [[5, 2], [6, 2], [7, 2]]
    made = encoder.encode(sources)
    assert [memory is None for memory in made] == [False, True, False]
    assert [memory is None for memory in encoder.recall(sources)] == [False, True, False]
    assert (value(metrics, "misses_total"), value(metrics, "hits_total")) == (2, 2)
