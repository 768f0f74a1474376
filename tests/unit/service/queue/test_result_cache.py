"""Results that are kept under all that they depend on; calls that share them are in test_intake.py."""

import sys

import pytest

from dragoman.errors import InternalError
from service.constraints import Constraints, Term
from service.decode import Decode, FinishReason, Hypothesis
from service.options import DEFAULT_DECODING, SCORING, Decoding, RequestOptions, Sampling
from service.queue.result_cache import Key, ResultCache, engine_s
from service.segment import Segment
from service.telemetry.metrics import Metrics

PLENTY = 1_000_000


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


HYPOTHESES = [
    Hypothesis([7, 8], -1.5, -0.5, FinishReason.EOS, 3),
    Hypothesis([7], -1.75, -1.75, FinishReason.LENGTH, 1),
]


def segment_of(source_ids: list[int], limit: int = 9, decoding: Decoding = DEFAULT_DECODING) -> Segment:
    return Segment(source_ids, limit, RequestOptions(decoding=decoding))


def ended(segment: Segment, reason: FinishReason = FinishReason.EOS) -> Decode:
    decode = Decode(segment.source_ids, segment.max_target_tokens, decoding=segment.options.decoding)
    decode.target_ids, decode.log_probability, decode.admitted_s = [7, 8], -1.5, 10.0
    decode.finish(reason, 12.5)
    return decode


def test_a_result_is_found_again_as_it_was(metrics: Metrics) -> None:
    cache, segment = ResultCache(PLENTY, metrics.of("m")), segment_of([5, 2])
    assert cache.find(Key.of(segment)) is None
    cache.keep(Key.of(segment), ended(segment))
    result = cache.find(Key.of(segment_of([5, 2])))
    again = result.decode(segment, 99.0)
    assert (again.target_ids, again.log_probability, again.finish_reason) == ([7, 8], -1.5, FinishReason.EOS)
    assert (again.finished, again.finished_s, result.engine_s) == (True, 99.0, 2.5)


def test_the_hypotheses_of_a_beam_are_found_again_as_they_were(metrics: Metrics) -> None:
    cache, segment = ResultCache(PLENTY, metrics.of("m")), segment_of([5, 2], decoding=Decoding(beam_size=2))
    decode = ended(segment)
    decode.hypotheses = HYPOTHESES
    cache.keep(Key.of(segment), decode)
    again = cache.find(Key.of(segment)).decode(segment, 99.0)
    assert [each._replace(target_ids=list(each.target_ids)) for each in again.hypotheses] == HYPOTHESES
    plain = ResultCache(PLENTY, metrics.of("m"))
    plain.keep(Key.of(segment), ended(segment))
    assert cache.size_bytes - plain.size_bytes == 2 * 256 + 3 * 4


@pytest.mark.parametrize(
    "other",
    [
        segment_of([5, 3]),
        segment_of([5, 2], 8),
        segment_of([5, 2], decoding=Decoding(wants_log_probability=True)),
        segment_of([5, 2], decoding=Decoding.of(beam_size=2)),
        segment_of([5, 2], decoding=Decoding.of(sampling=Sampling(3))),
        Segment([5, 2], 9, start_ids=(1, 7)),  # into another language
        Segment([5, 2], 9, prefix_ids=(7,)),
        Segment([5, 2], 9, constraints=Constraints((((7, 8),),), {9})),
    ],
)
def test_what_would_be_decoded_otherwise_is_another_result(other: Segment) -> None:
    assert Key.of(other) != Key.of(segment_of([5, 2]))


def test_what_may_stand_there_only_a_number_of_times_counts() -> None:
    keys = [
        Key.of(Segment([5, 2], 9, constraints=Constraints((((7, 8),),), {9}, at_most=(((7, 8), most),))))
        for most in (1, 2, 1)
    ]
    assert keys[0] == keys[2] != keys[1]
    terms_only = Key.of(Segment([5, 2], 9, constraints=Constraints((((7, 8),),), {9})))
    assert keys[0] != terms_only
    assert keys[0].size_bytes - terms_only.size_bytes == 128 + 2 * 40


def test_terms_are_what_counts_of_constraints(metrics: Metrics) -> None:
    def constrained(*terms: Term) -> Segment:
        return Segment([5, 2], 9, constraints=Constraints(terms, {9}))

    keys = [
        Key.of(constrained(*terms)) for terms in ([((7, 8),)], [((7,), (8,))], [((7,),), ((8,),)], [((7,),), ((7,),)])
    ]
    assert len(set(keys)) == 4
    assert Key.of(constrained(((7, 8),))) == keys[0]
    assert keys[0].size_bytes - Key.of(segment_of([5, 2])).size_bytes == 128 + 2 * 40
    cache, segment = ResultCache(PLENTY, metrics.of("m")), constrained(((7, 8),))
    cache.keep(keys[0], ended(segment))
    assert cache.find(keys[0]).decode(segment, 99.0).constraints == segment.constraints


def test_who_asks_and_how_urgently_makes_no_difference() -> None:
    options = RequestOptions(client="bob", deadline_s=1.0, wants_deltas=True, has_tags=True)
    assert Key.of(Segment([5, 2], 9, options)) == Key.of(segment_of([5, 2]))


def test_what_is_asked_for_and_changes_no_decode_makes_no_difference() -> None:
    def key(**options: object) -> Key:
        return Key.of(segment_of([5, 2], decoding=Decoding.of(**options)))

    assert key(beam_size=1, length_penalty=2.0) == key()
    assert key(beam_size=1, alternatives=1) == key(log_probability=True)
    assert key(beam_size=4, alternatives=1, log_probability=True) == key(beam_size=4)
    others = [key(), key(beam_size=4), key(beam_size=5), key(beam_size=4, length_penalty=2.0)]
    assert len({*others, key(beam_size=4, alternatives=2)}) == 5


@pytest.mark.parametrize("reason", FinishReason)
def test_only_ends_that_would_come_again_are_kept(metrics: Metrics, reason: FinishReason) -> None:
    cache, segment = ResultCache(PLENTY, metrics.of("m")), segment_of([5, 2])
    cache.keep(Key.of(segment), ended(segment, reason))
    lasting = reason in (FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION)
    assert (cache.find(Key.of(segment)) is not None) is lasting


def test_an_error_is_not_kept(metrics: Metrics) -> None:
    cache, segment = ResultCache(PLENTY, metrics.of("m")), segment_of([5, 2])
    decode = Decode([5, 2], 9)
    decode.fail(InternalError("a fault"), 1.0)
    cache.keep(Key.of(segment), decode)
    assert cache.find(Key.of(segment)) is None


def test_draws_are_other_results_by_seed_and_segment_and_none_is_kept(metrics: Metrics) -> None:
    cache = ResultCache(PLENTY, metrics.of("m"))
    samplings = [Sampling(3), Sampling(4), Sampling(3, segment=1), Sampling(3, temperature=0.5)]
    segments = [segment_of([5, 2], decoding=Decoding.of(sampling=sampling)) for sampling in samplings]
    keys = [Key.of(segment) for segment in segments]
    assert len(set(keys)) == 4
    for key, segment in zip(keys, segments, strict=True):
        cache.keep(key, ended(segment))
        assert cache.find(key) is None
    assert cache.size_bytes == 0


def test_scores_of_a_given_translation_are_found_again_and_are_another_result(metrics: Metrics) -> None:
    cache = ResultCache(PLENTY, metrics.of("m"))
    segment, other, free = (
        Segment([5, 2], 3, RequestOptions(decoding=SCORING), scored_ids=ids) for ids in ((7, 8, 2), (7, 9, 2), ())
    )
    assert len({Key.of(each) for each in (segment, other, free)}) == 3
    decode = ended(segment)
    decode.token_log_probabilities = [-0.25, -0.5, -0.75]
    cache.keep(Key.of(segment), decode)
    again = cache.find(Key.of(segment)).decode(segment, 99.0)
    assert again.token_log_probabilities == [-0.25, -0.5, -0.75]
    assert (again.scored_ids, again.log_probability) == ((7, 8, 2), -1.5)
    plain = ResultCache(PLENTY, metrics.of("m"))
    plain.keep(Key.of(free), ended(free))
    assert cache.size_bytes - plain.size_bytes == 3 * 4 + 3 * 8


def test_bytes_are_bounded_counted_and_given_back(metrics: Metrics) -> None:
    cache = ResultCache(2_000, metrics.of("m"))
    for number in range(20):
        segment = segment_of([number, 2])
        cache.keep(Key.of(segment), ended(segment))
        assert 0 < cache.size_bytes <= 2_000
        assert metrics.total("result_cache_bytes") == cache.size_bytes
    assert cache.find(Key.of(segment_of([0, 2]))) is None
    assert cache.find(Key.of(segment_of([19, 2]))) is not None
    cache.clear()
    assert metrics.total("result_cache_bytes") == cache.size_bytes == 0


def test_hits_and_misses_are_counted_unless_nothing_is_ever_kept(metrics: Metrics) -> None:
    cache, segment = ResultCache(PLENTY, metrics.of("m")), segment_of([5, 2])
    cache.keep(Key.of(segment), ended(segment))
    drawn = segment_of([5, 2], decoding=Decoding.of(sampling=Sampling(1)))
    cache.count([cache.find(Key.of(segment))] * 2, [Key.of(each) for each in (segment, drawn, segment, segment)])
    ResultCache(0, metrics.of("m")).count([], [Key.of(segment)] * 5)
    names = ("result_cache_hits_total", "result_cache_saved_seconds_total", "result_cache_misses_total")
    assert [metrics.total(name) for name in names] == [2, 5.0, 3]


def test_a_decode_that_was_never_taken_took_no_time_of_an_engine() -> None:
    decode = Decode([2], 9)
    decode.finish(FinishReason.EOS, 5.0)
    assert engine_s(decode) == 0.0


def test_the_prefix_of_a_key_takes_what_is_counted() -> None:
    plain, prefixed = (Key.of(Segment([5, 2], 9, prefix_ids=ids)) for ids in ((), tuple(range(1_000, 1_200))))
    assert prefixed.size_bytes - plain.size_bytes == 200 * 4 >= sys.getsizeof(prefixed.prefix_ids) - sys.getsizeof(b"")
