"""Results that are kept under all that they depend on; calls that share them are in test_intake.py."""

import sys
from array import array

import pytest

from dragoman.errors import InternalError
from service.constraints import Constraints, Term
from service.decode import Decode, FinishReason, Hypothesis
from service.options import SCORING, Decoding, Priority, Sampling
from service.queue.result_cache import Key, Result, ResultCache, size_bytes
from service.telemetry.metrics import Metrics

PLENTY = 1_000_000
NOTHING = Result(array("i"), 0.0, FinishReason.EOS, 0.0)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


HYPOTHESES = [
    Hypothesis([7, 8], -1.5, -0.5, FinishReason.EOS, 3),
    Hypothesis([7], -1.75, -1.75, FinishReason.LENGTH, 1),
]


def ended(decode: Decode, reason: FinishReason = FinishReason.EOS) -> Decode:
    decode.target_ids, decode.log_probability, decode.admitted_s = [7, 8], -1.5, 10.0
    decode.finish(reason, 12.5)
    return decode


def test_a_result_is_found_again_as_it_was(metrics: Metrics) -> None:
    cache, decode = ResultCache(PLENTY, metrics.of("m")), Decode([5, 2], 9)
    assert cache.get(Key.of(decode)) is None
    cache.keep(Key.of(decode), ended(decode))
    again = Decode([5, 2], 9)
    result = cache.get(Key.of(again))
    result.end(again, 99.0)
    assert (again.target_ids, again.log_probability, again.finish_reason) == ([7, 8], -1.5, FinishReason.EOS)
    assert (again.finished, again.finished_s, result.engine_s) == (True, 99.0, 2.5)


def test_the_hypotheses_of_a_beam_are_found_again_as_they_were(metrics: Metrics) -> None:
    cache = ResultCache(PLENTY, metrics.of("m"))
    first, again, plainly = (Decode([5, 2], 9, decoding=Decoding(beam_size=2)) for _ in range(3))
    first.hypotheses = HYPOTHESES
    cache.keep(Key.of(first), ended(first))
    cache.get(Key.of(again)).end(again, 99.0)
    assert [each._replace(target_ids=list(each.target_ids)) for each in again.hypotheses] == HYPOTHESES
    plain = ResultCache(PLENTY, metrics.of("m"))
    plain.keep(Key.of(plainly), ended(plainly))
    assert cache.size_bytes - plain.size_bytes == 2 * 256 + 3 * 4


@pytest.mark.parametrize(
    "other",
    [
        Decode([5, 3], 9),
        Decode([5, 2], 8),
        Decode([5, 2], 9, decoding=Decoding(wants_log_probability=True)),
        Decode([5, 2], 9, decoding=Decoding.of(beam_size=2)),
        Decode([5, 2], 9, decoding=Decoding.of(sampling=Sampling(3))),
        Decode([5, 2], 9, start_ids=(1, 7)),  # into another language
        Decode([5, 2], 9, prefix_ids=(7,)),
        Decode([5, 2], 9, constraints=Constraints((((7, 8),),), {9})),
    ],
)
def test_what_would_be_decoded_otherwise_is_another_result(other: Decode) -> None:
    assert Key.of(other) != Key.of(Decode([5, 2], 9))


def test_what_may_stand_there_only_a_number_of_times_counts() -> None:
    keys = [
        Key.of(Decode([5, 2], 9, constraints=Constraints((((7, 8),),), {9}, at_most=(((7, 8), most),))))
        for most in (1, 2, 1)
    ]
    assert keys[0] == keys[2] != keys[1]
    terms_only = Key.of(Decode([5, 2], 9, constraints=Constraints((((7, 8),),), {9})))
    assert keys[0] != terms_only
    assert size_bytes(keys[0], NOTHING) - size_bytes(terms_only, NOTHING) == 128 + 2 * 40


def test_terms_are_what_counts_of_constraints() -> None:
    def constrained(*terms: Term) -> Decode:
        return Decode([5, 2], 9, constraints=Constraints(terms, {9}))

    keys = [
        Key.of(constrained(*terms)) for terms in ([((7, 8),)], [((7,), (8,))], [((7,),), ((8,),)], [((7,),), ((7,),)])
    ]
    assert len(set(keys)) == 4
    assert Key.of(constrained(((7, 8),))) == keys[0]
    plain = Key.of(Decode([5, 2], 9))
    assert size_bytes(keys[0], NOTHING) - size_bytes(plain, NOTHING) == 128 + 2 * 40


def test_who_asks_and_how_urgently_makes_no_difference() -> None:
    urgent = Decode([5, 2], 9, deadline_s=1.0, wants_deltas=True, client="bob", priority=Priority.BULK, text_bytes=7)
    assert Key.of(urgent) == Key.of(Decode([5, 2], 9))


def test_what_is_asked_for_and_changes_no_decode_makes_no_difference() -> None:
    def key(**options: object) -> Key:
        return Key.of(Decode([5, 2], 9, decoding=Decoding.of(**options)))

    assert key(beam_size=1, length_penalty=2.0) == key()
    assert key(beam_size=1, alternatives=1) == key(log_probability=True)
    assert key(beam_size=4, alternatives=1, log_probability=True) == key(beam_size=4)
    others = [key(), key(beam_size=4), key(beam_size=5), key(beam_size=4, length_penalty=2.0)]
    assert len({*others, key(beam_size=4, alternatives=2)}) == 5


@pytest.mark.parametrize("reason", FinishReason)
def test_only_ends_that_would_come_again_are_kept(metrics: Metrics, reason: FinishReason) -> None:
    cache, decode = ResultCache(PLENTY, metrics.of("m")), Decode([5, 2], 9)
    cache.keep(Key.of(decode), ended(decode, reason))
    lasting = reason in (FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION)
    assert (cache.get(Key.of(decode)) is not None) is lasting


def test_an_error_is_not_kept(metrics: Metrics) -> None:
    cache, decode = ResultCache(PLENTY, metrics.of("m")), Decode([5, 2], 9)
    decode.fail(InternalError("a fault"), 1.0)
    cache.keep(Key.of(decode), decode)
    assert cache.get(Key.of(decode)) is None


def test_draws_are_other_results_by_seed_and_segment_and_none_is_kept(metrics: Metrics) -> None:
    cache = ResultCache(PLENTY, metrics.of("m"))
    samplings = [Sampling(3), Sampling(4), Sampling(3, segment=1), Sampling(3, temperature=0.5)]
    decodes = [Decode([5, 2], 9, decoding=Decoding.of(sampling=sampling)) for sampling in samplings]
    keys = [Key.of(decode) for decode in decodes]
    assert len(set(keys)) == 4
    for key, decode in zip(keys, decodes, strict=True):
        cache.keep(key, ended(decode))
        assert cache.get(key) is None
    assert cache.size_bytes == 0


def test_scores_of_a_given_translation_are_found_again_and_are_another_result(metrics: Metrics) -> None:
    cache = ResultCache(PLENTY, metrics.of("m"))
    scored, again, other, free = (
        Decode([5, 2], 3, decoding=SCORING, scored_ids=ids) for ids in ((7, 8, 2), (7, 8, 2), (7, 9, 2), ())
    )
    assert len({Key.of(each) for each in (scored, again, other, free)}) == 3
    scored.token_log_probabilities = [-0.25, -0.5, -0.75]
    cache.keep(Key.of(scored), ended(scored))
    cache.get(Key.of(again)).end(again, 99.0)
    assert again.token_log_probabilities == [-0.25, -0.5, -0.75]
    assert again.log_probability == -1.5
    plain = ResultCache(PLENTY, metrics.of("m"))
    plain.keep(Key.of(free), ended(free))
    assert cache.size_bytes - plain.size_bytes == 3 * 4 + 3 * 8


def test_bytes_are_bounded_counted_and_given_back(metrics: Metrics) -> None:
    cache = ResultCache(2_000, metrics.of("m"))
    for number in range(20):
        decode = Decode([number, 2], 9)
        cache.keep(Key.of(decode), ended(decode))
        assert 0 < cache.size_bytes <= 2_000
        assert metrics.total("result_cache_bytes") == cache.size_bytes
    assert cache.get(Key.of(Decode([0, 2], 9))) is None
    assert cache.get(Key.of(Decode([19, 2], 9))) is not None
    cache.clear()
    assert metrics.total("result_cache_bytes") == cache.size_bytes == 0


def test_hits_and_misses_are_counted_unless_nothing_is_ever_kept(metrics: Metrics) -> None:
    cache, decode = ResultCache(PLENTY, metrics.of("m")), Decode([5, 2], 9)
    cache.keep(Key.of(decode), ended(decode))
    drawn = Decode([5, 2], 9, decoding=Decoding.of(sampling=Sampling(1)))
    cache.count([cache.get(Key.of(decode))] * 2, [Key.of(each) for each in (decode, drawn, decode, decode)])
    ResultCache(0, metrics.of("m")).count([], [Key.of(decode)] * 5)
    names = ("result_cache_hits_total", "result_cache_saved_seconds_total", "result_cache_misses_total")
    assert [metrics.total(name) for name in names] == [2, 5.0, 3]


def test_a_decode_that_was_never_taken_took_no_time_of_an_engine() -> None:
    decode = Decode([2], 9)
    decode.finish(FinishReason.EOS, 5.0)
    assert decode.engine_s == 0.0


def test_the_prefix_of_a_key_takes_what_is_counted() -> None:
    plain, prefixed = (Key.of(Decode([5, 2], 9, prefix_ids=ids)) for ids in ((), tuple(range(1_000, 1_200))))
    counted = size_bytes(prefixed, NOTHING) - size_bytes(plain, NOTHING)
    assert counted == 200 * 4 >= sys.getsizeof(prefixed.prefix_ids) - sys.getsizeof(b"")
