import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.prepare import LoadSettings, make_loop, make_workload
from dragoman.v1 import translation_pb2

TEXTS = ["one two three", "four", "five six"]
MODELS = [translation_pb2.Model(name="en-de"), translation_pb2.Model(name="en-fr")]

loads = st.builds(
    LoadSettings,
    address=st.just("nowhere:1"),
    concurrency=st.just(2),
    requests=st.integers(1, 60),
    texts_per_request=st.integers(1, 5),
    seed=st.integers(0, 9),
    verify_texts=st.integers(0, 3),
    repeat_share=st.sampled_from([0.0, 0.5, 1.0]),
    bulk_share=st.sampled_from([0.0, 0.5, 1.0]),
    beam_size=st.sampled_from([0, 1, 4]),
)


@given(loads)
def test_requests_hold_the_drawn_texts_in_order_with_their_priorities(settings: LoadSettings) -> None:
    work = make_workload(settings, TEXTS, make_loop(settings), MODELS)
    requests = [translation_pb2.TranslateTextRequest.FromString(request) for request in work.requests]
    sent = [text for request in requests for text in request.contents]
    assert sent[: len(work.texts)] == work.texts
    # The last one is filled up from the beginning.
    assert all(text == work.texts[index % len(work.texts)] for index, text in enumerate(sent))
    assert {len(request.contents) for request in requests} == {settings.texts_per_request}
    assert {request.model for request in requests} == {"en-de"}
    assert {request.options.beam_size for request in requests} == {settings.beam_size}
    assert all(request.HasField("options") is bool(settings.beam_size) for request in requests)
    bulk = {number for number, request in enumerate(requests) if request.priority == translation_pb2.PRIORITY_BULK}
    assert bulk == work.bulk
    if settings.bulk_share == 1.0:
        assert len(bulk) == len(requests) >= settings.requests
    if settings.verify_texts:
        assert len(set(work.texts)) <= settings.verify_texts
    assert work == make_workload(settings, TEXTS, make_loop(settings), MODELS)


def test_without_wishes_every_text_of_the_file_is_sent_once_in_turn() -> None:
    work = make_workload(
        LoadSettings("nowhere:1", concurrency=1, requests=99), TEXTS, ClosedLoop(1, 0.0, 1.0, 99), MODELS
    )
    assert work.texts == TEXTS
    assert len(work.requests) == len(TEXTS)


def test_an_open_loop_draws_as_many_texts_as_there_are_arrivals() -> None:
    settings = LoadSettings("nowhere:1", rate=50.0, duration_s=2.0, warmup_s=1.0, repeat_share=0.5)
    loop = make_loop(settings)
    assert isinstance(loop, OpenLoop)
    assert len(loop.arrivals_s) == pytest.approx(150, rel=0.3)
    assert len(make_workload(settings, TEXTS, loop, MODELS).requests) == len(loop.arrivals_s)


def test_texts_that_are_compared_are_the_first_that_differ() -> None:
    settings = LoadSettings("nowhere:1", concurrency=1, requests=1, verify_texts=3)
    texts = ["b", "a", "b", "c", "d"]
    assert make_workload(settings, texts, make_loop(settings), MODELS).texts == ["b", "a", "c"]


@given(st.integers(0, 2**32 - 1))
def test_requests_of_the_priority_bulk_are_none_or_all_at_the_ends(seed: int) -> None:
    for bulk_share, bulk in ((0.0, frozenset()), (1.0, frozenset(range(30)))):
        load = LoadSettings("nowhere:1", concurrency=1, requests=30, bulk_share=bulk_share, seed=seed)
        assert make_workload(load, TEXTS, make_loop(load), MODELS).bulk == bulk


def test_the_share_of_requests_of_the_priority_bulk() -> None:
    load = LoadSettings("nowhere:1", concurrency=1, requests=10_000, bulk_share=0.3, seed=1)
    assert len(make_workload(load, TEXTS, make_loop(load), MODELS).bulk) == pytest.approx(3000, rel=0.05)
