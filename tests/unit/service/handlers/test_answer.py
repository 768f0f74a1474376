"""Pages of the list of models, and answers that fit the messages that a client takes."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import Manifest
from dragoman.errors import AnswerTooLargeError, InternalError, InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.answers import in_messages
from service.decode import FinishReason
from service.handlers.answer import listed, pieces, sendable, translated, whole
from service.handlers.route import Route
from service.handlers.validation import check_page
from service.options import Decoding, RequestOptions, Sampling
from service.registry.catalog import Choice
from service.text.alignment import Link
from service.text.alternatives import Alternative
from service.text.result import TextResult
from service.text.text_quality import SegmentQuality

NAMES = ["de-en", "en-de", "en-fr", "fr-en", "it-en"]


@pytest.fixture
def manifests(manifest: Manifest) -> list[Manifest]:
    return [manifest.model_copy(update={"name": name}) for name in NAMES]


def pages(manifests: list[Manifest], size: int) -> list[list[str]]:
    found, token = [], ""
    while True:
        page = listed(manifests, pb.ListModelsRequest(page_size=size, page_token=token))
        found.append([model.name for model in page.models])
        if not (token := page.next_page_token):
            return found


@pytest.mark.parametrize("size", [0, 5, 6, 2**31 - 1])
def test_all_models_fit_one_page_unless_it_is_to_be_smaller(manifests, size) -> None:
    assert pages(manifests, size) == [NAMES]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_pages_hold_each_model_once_in_order(manifests, size) -> None:
    assert pages(manifests, size) == [NAMES[start : start + size] for start in range(0, len(NAMES), size)]


def test_a_token_stays_good_when_its_model_goes(manifests) -> None:
    token = listed(manifests, pb.ListModelsRequest(page_size=2)).next_page_token
    del manifests[1]
    rest = listed(manifests, pb.ListModelsRequest(page_token=token))
    assert [model.name for model in rest.models] == NAMES[2:]


def test_no_models_are_an_empty_last_page() -> None:
    assert listed([], pb.ListModelsRequest(page_size=1)) == pb.ListModelsResponse()


def test_a_negative_page_is_an_error() -> None:
    check_page(pb.ListModelsRequest(page_size=0))
    with pytest.raises(InvalidRequestError, match=r"^page_size: must not be negative, is -1$"):
        check_page(pb.ListModelsRequest(page_size=-1))


MAX_BYTES = 65_536
LONGEST_NAME = "a" * 64


def route_of(model: str = "m", pivot: str = "", beam_size: int = 1, seed: int | None = None) -> Route:
    """A route by models of these names."""
    into, out_of = (SimpleNamespace(manifest=SimpleNamespace(name=name)) for name in (pivot, model))
    chosen = Choice(out_of, "", "", Choice(into, "", "") if pivot else None)
    sampling = None if seed is None else Sampling(seed)
    return Route(chosen, RequestOptions(decoding=Decoding(beam_size=beam_size, sampling=sampling)))


def result(text: str) -> TextResult:
    return TextResult(text, 10**6, 10**6, FinishReason.LENGTH, 10**6, -123.456, 10**6, split=True)


@pytest.mark.parametrize("character", ["a", "ä", "€", "😀"])
def test_the_largest_translation_that_is_sendable_fits_every_message(character: str) -> None:
    width = len(character.encode())
    largest = result(character * ((MAX_BYTES - 1_024) // width))
    assert sendable(largest, MAX_BYTES) is largest
    translation = translated(largest, route_of(LONGEST_NAME, LONGEST_NAME, beam_size=16))
    for message in (
        pb.StreamTranslateTextResponse(content_index=2**32 - 1, result=translation, request_id="i" * 128),
        pb.BatchTranslateTextResponse(
            translations=[pb.BatchTranslation(content_index=2**63, translation=translation)], request_id="i" * 128
        ),
    ):
        assert MAX_BYTES - 1_024 < message.ByteSize() <= MAX_BYTES
    error = sendable(largest._replace(text=largest.text + character * 4), MAX_BYTES)
    assert isinstance(error, AnswerTooLargeError)
    assert (error.reason, error.retryable, error.metadata["max_answer_bytes"]) == ("ANSWER_TOO_LARGE", False, "65536")


@pytest.mark.parametrize("count", [1, 2, 16])
def test_the_largest_alternatives_that_are_sendable_fit_every_message(count: int) -> None:
    size = (MAX_BYTES - 1_024 - count * 48) // (count + 1)
    alternative = Alternative("a" * size, -123.456, FinishReason.LENGTH, -1.5)
    largest = result("a" * size)._replace(alternatives=[alternative] * count)
    assert sendable(largest, MAX_BYTES) is largest
    translation = translated(largest, route_of(LONGEST_NAME, LONGEST_NAME, beam_size=16))
    message = pb.StreamTranslateTextResponse(content_index=2**32 - 1, result=translation, request_id="i" * 128)
    assert MAX_BYTES - 2_048 < message.ByteSize() <= MAX_BYTES
    longer = alternative._replace(text="a" * (size + count + 1))
    error = sendable(largest._replace(alternatives=[longer, *largest.alternatives[1:]]), MAX_BYTES)
    assert isinstance(error, AnswerTooLargeError)


@pytest.mark.parametrize("place", [1, 2**21, 2**28 - 2])
def test_the_most_alignments_that_are_sendable_fit_every_message(place: int) -> None:
    link = Link((place, place + 1), (place, place + 1), 0.5)
    count = (MAX_BYTES - 1_024 - 1_000) // 28
    largest = result("a" * 1_000)._replace(alignments=[link] * count)
    assert sendable(largest, MAX_BYTES) is largest
    translation = translated(largest, route_of(LONGEST_NAME, LONGEST_NAME, beam_size=16))
    message = pb.StreamTranslateTextResponse(content_index=2**32 - 1, result=translation, request_id="i" * 128)
    assert message.ByteSize() <= MAX_BYTES
    error = sendable(largest._replace(alignments=[link] * (count + 1)), MAX_BYTES)
    assert isinstance(error, AnswerTooLargeError)


def test_alignments_are_written_as_they_are() -> None:
    made = result("a")._replace(alignments=[Link((1, 3), (4, 9), 0.5)])
    [alignment] = translated(made, route_of()).alignments
    assert alignment == pb.WordAlignment(source_start=1, source_end=3, target_start=4, target_end=9, weight=0.5)


@pytest.mark.parametrize("place", [1, 2**21, 2**28 - 2])
def test_the_most_estimates_that_are_sendable_fit_every_message(place: int) -> None:
    quality = SegmentQuality(place, place + 1, 0.5)
    count = (MAX_BYTES - 1_024 - 1_000) // 22
    largest = result("a" * 1_000)._replace(segment_qualities=[quality] * count)
    assert sendable(largest, MAX_BYTES) is largest
    translation = translated(largest, route_of(LONGEST_NAME, LONGEST_NAME, beam_size=16))
    message = pb.StreamTranslateTextResponse(content_index=2**32 - 1, result=translation, request_id="i" * 128)
    assert message.ByteSize() <= MAX_BYTES
    error = sendable(largest._replace(segment_qualities=[quality] * (count + 1)), MAX_BYTES)
    assert isinstance(error, AnswerTooLargeError)


def test_estimates_are_written_as_they_are() -> None:
    made = result("a")._replace(quality_estimate=0.25, segment_qualities=[SegmentQuality(0, 1, 0.25)])
    translation = translated(made, route_of())
    assert translation.quality_estimate == 0.25
    [quality] = translation.segment_qualities
    assert quality == pb.SegmentQuality(target_start=0, target_end=1, quality_estimate=0.25)
    assert not translated(result("a"), route_of()).HasField("quality_estimate")


def test_alternatives_are_written_as_they_are() -> None:
    made = result("a")._replace(alternatives=[Alternative("a", -1.5, FinishReason.LENGTH, -0.5)])
    translation = translated(made, route_of(beam_size=4))
    assert translation.beam_size == 4
    assert list(translation.alternatives) == [
        pb.Alternative(
            translated_text="a", score=-1.5, finish_reason=pb.FINISH_REASON_LENGTH, mean_log_probability=-0.5
        )
    ]


def test_a_seed_is_told_where_there_is_one() -> None:
    assert not translated(result("a"), route_of()).HasField("seed")
    for seed in (0, 2**32 - 1):
        translation = translated(result("a"), route_of(seed=seed))
        assert translation.HasField("seed")
        assert translation.seed == seed


def test_an_error_has_no_beam_and_no_seed() -> None:
    failed = translated(InternalError("broken"), route_of(beam_size=4))
    assert (failed.model, failed.beam_size, failed.HasField("seed")) == ("m", 0, False)
    drawn = translated(InternalError("broken"), route_of(seed=3))
    assert (drawn.beam_size, drawn.HasField("seed")) == (0, False)
    assert translated(InternalError("broken"), None).model == ""


def test_an_error_is_sent_as_it_is() -> None:
    error = InternalError("broken")
    assert sendable(error, MAX_BYTES) is error


@given(sizes=st.lists(st.integers(0, MAX_BYTES - 1_024) | st.just(0), max_size=30))
def test_answers_are_grouped_in_order_into_as_few_messages_as_hold_them(sizes: list[int]) -> None:
    answers = [
        pb.BatchTranslation(content_index=index, translation=translated(result("a" * size), route_of(LONGEST_NAME)))
        for index, size in enumerate(sizes)
    ]
    groups = list(in_messages(answers, MAX_BYTES))
    assert [answer for group in groups for answer in group] == answers
    messages = [pb.BatchTranslateTextResponse(translations=group, request_id="i" * 128) for group in groups]
    assert all(message.translations and message.ByteSize() <= MAX_BYTES for message in messages)
    for group, following in pairwise(groups):
        together = pb.BatchTranslateTextResponse(translations=[*group, following[0]]).ByteSize()
        assert together > MAX_BYTES - 2 * 1_024


@given(st.text("aä€😀").map(lambda text: text * 3_000))
def test_pieces_make_the_delta_and_each_fits(delta: str) -> None:
    parts = list(pieces(delta, MAX_BYTES))
    assert "".join(parts) == delta
    assert all(
        part and pb.StreamTranslateTextResponse(content_index=1, text_delta=part).ByteSize() <= MAX_BYTES
        for part in parts
    )


def test_a_whole_answer_fits_to_the_byte() -> None:
    answer = pb.TranslateTextResponse(translations=[translated(result("a" * 1_000), route_of())])
    assert whole(answer, answer.ByteSize()) is answer
    with pytest.raises(AnswerTooLargeError, match=rf"at most {answer.ByteSize() - 1} bytes, is {answer.ByteSize()}"):
        whole(answer, answer.ByteSize() - 1)
