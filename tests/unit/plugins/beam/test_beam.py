"""Beam search on small languages whose every translation can be listed."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.beam.beam import Beam, common_length
from service.decode import FinishReason
from service.engine.step import Best

EOS = 0
seeds = st.integers(0, 10_000)


def log_probabilities(seed: int, ids: tuple[int, ...], tokens: int) -> list[float]:
    """What a language says of each next token: anything, and always the same."""
    draw = random.Random(f"{seed} {ids}")
    weights = [draw.random() ** 3 + 1e-3 for _ in range(tokens)]
    return [math.log(weight / sum(weights)) for weight in weights]


def best_of(seed: int, ids: tuple[int, ...], tokens: int, count: int) -> Best:
    scores = log_probabilities(seed, ids, tokens)
    order = sorted(range(tokens), key=lambda token: -scores[token])[:count]
    return Best(order, [scores[token] for token in order])


def step(beam: Beam, seed: int, tokens: int) -> list[int]:
    return beam.advance([best_of(seed, live.ids, tokens, 2 * beam.size) for live in beam.live])


def searched(seed: int, *, size: int, limit: int, tokens: int, length_penalty: float = 1.0, given: int = 0) -> Beam:
    beam = Beam(size, length_penalty, limit=limit, eos_id=EOS, given=given)
    while not beam.ended:
        step(beam, seed, tokens)
    return beam


@given(seed=seeds, limit=st.integers(1, 4))
def test_a_beam_that_holds_everything_finds_the_best(seed: int, limit: int) -> None:
    """Without a length penalty nothing can become better by going on, so the search may not end too early."""
    every: list[tuple[float, tuple[int, ...]]] = []
    for length in range(1, limit + 1):
        for ids in itertools.product(range(3), repeat=length):
            if EOS in ids[:-1] or (ids[-1] != EOS and length < limit):
                continue
            score = sum(log_probabilities(seed, ids[:place], 3)[token] for place, token in enumerate(ids))
            every.append((score, ids))
    beam = searched(seed, size=16, limit=limit, tokens=3, length_penalty=0.0)
    best_score, best_ids = max(every)
    found = beam.finished[0]
    assert found.score == pytest.approx(best_score)
    assert (*found.target_ids, *([EOS] if found.finish_reason is FinishReason.EOS else [])) == best_ids


@given(seed=seeds, size=st.integers(2, 6), limit=st.integers(1, 9), penalty=st.floats(-2, 2), given=st.integers(0, 2))
def test_what_is_found_is_scored_as_it_says(seed: int, size: int, limit: int, penalty: float, given: int) -> None:
    beam = searched(seed, size=size, limit=limit, tokens=9, length_penalty=penalty, given=given)
    assert 1 <= len(beam.finished) <= size
    assert [each.score for each in beam.finished] == sorted((each.score for each in beam.finished), reverse=True)
    for each in beam.finished:
        ended = each.finish_reason is FinishReason.EOS
        assert ended or len(each.target_ids) == limit
        ids = (*each.target_ids, EOS) if ended else tuple(each.target_ids)
        sum_ = sum(log_probabilities(seed, ids[:place], 9)[token] for place, token in enumerate(ids))
        assert each.log_probability == pytest.approx(sum_)
        assert each.score == pytest.approx(sum_ / (given + len(ids)) ** penalty)
    assert len({(tuple(each.target_ids), each.finish_reason) for each in beam.finished}) == len(beam.finished)


@given(seed=seeds, size=st.integers(2, 6), limit=st.integers(2, 9))
def test_each_lane_continues_its_parent_and_its_own_where_it_can(seed: int, size: int, limit: int) -> None:
    beam = Beam(size, 1.0, limit=limit, eos_id=EOS)
    while True:
        before = beam.live
        parents = step(beam, seed, 9)
        if beam.ended:
            break
        assert len(parents) == len(beam.live) == size
        for lane, parent in enumerate(parents):
            assert beam.live[lane].ids[:-1] == before[parent].ids
            if parent != lane:
                assert parents[parent] == parent, "what is copied is there until the copies are made"


@given(seed=seeds, size=st.integers(2, 6), limit=st.integers(1, 12))
def test_what_all_hypotheses_share_is_never_taken_back(seed: int, size: int, limit: int) -> None:
    beam = Beam(size, 1.0, limit=limit, eos_id=EOS)
    told: tuple[int, ...] = ()
    while not beam.ended:
        step(beam, seed, 4)
        if not beam.ended:
            common = beam.common_ids(len(told))
            assert common[: len(told)] == told
            told = common
    assert tuple(beam.finished[0].target_ids)[: len(told)] == told


def test_the_limit_ends_every_hypothesis() -> None:
    beam = Beam(2, 1.0, limit=1, eos_id=EOS)
    assert beam.advance([Best([5, EOS, 7, 8], [-1.0, -2.0, -3.0, -4.0])]) == []
    assert [(each.target_ids, each.finish_reason) for each in beam.finished] == [
        ((5,), FinishReason.LENGTH),
        ((), FinishReason.EOS),
    ]


def test_an_end_behind_the_first_ones_does_not_count() -> None:
    """Of the best four, only the first two may end; the others are there so that two can go on."""
    beam = Beam(2, 1.0, limit=9, eos_id=EOS)
    beam.advance([Best([5, 7, EOS, 8], [-1.0, -2.0, -3.0, -4.0])])
    assert beam.finished == []
    assert [live.ids for live in beam.live] == [(5,), (7,)]


def test_an_end_at_the_first_rank_behind_them_does_not_count() -> None:
    """The first end takes the place of one that could go on, so the other is looked at."""
    beam = Beam(2, 1.0, limit=9, eos_id=EOS)
    beam.advance([Best([5, 7, 8, 9], [-1.0, -1.5, -8.0, -9.0])])
    beam.advance([Best([EOS, 5, 7, 8], [-0.5, -1.0, -8.0, -9.0]), Best([EOS, 5, 7, 8], [-1.0, -1.5, -8.0, -9.0])])
    assert [each.target_ids for each in beam.finished] == [(5,)]
    assert [live.ids for live in beam.live] == [(5, 5), (7, 5)]


def test_a_search_that_is_stopped_keeps_what_lives() -> None:
    beam = Beam(2, 1.0, limit=9, eos_id=EOS)
    beam.advance([Best([5, EOS, 8, 9], [-1.0, -1.5, -3.0, -4.0])])
    beam.stop()
    assert beam.ended
    assert [(each.target_ids, each.finish_reason) for each in beam.finished] == [
        ((5,), FinishReason.REPETITION),
        ((), FinishReason.EOS),
    ]


def test_common_length() -> None:
    assert [common_length("abc", other) for other in ("abd", "abc", "", "xbc", "abcd")] == [2, 3, 0, 0, 3]


@given(seed=seeds, size=st.integers(2, 5), limit=st.integers(1, 6))
def test_what_is_given_counts_for_no_score(seed: int, size: int, limit: int) -> None:
    prefix = (5, 6)
    beam = Beam(size, 1.0, limit=len(prefix) + limit, eos_id=EOS)
    for token in prefix:
        beam.begin_with(token)
    while not beam.ended:
        step(beam, seed, 9)
    for found in beam.finished:
        ids = tuple(found.target_ids) + ((EOS,) if found.finish_reason is FinishReason.EOS else ())
        assert ids[:2] == prefix
        assert found.decoded_tokens == len(ids) - 2
        chosen = range(2, len(ids))
        assert found.log_probability == pytest.approx(
            sum(log_probabilities(seed, ids[:place], 9)[ids[place]] for place in chosen)
        )
        assert found.score == pytest.approx(found.log_probability / found.decoded_tokens)
