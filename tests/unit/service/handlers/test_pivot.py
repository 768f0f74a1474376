"""Texts that take two models: the handlers with an engine that repeats what it reads."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.bundle import Manifest
from dragoman.errors import InternalError, InvalidRequestError, UnknownLanguagePairError
from dragoman.language_marks import Languages
from dragoman.tokenizer import Tokenizer
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.method import batch
from service.decode import FinishReason, Hypothesis
from service.handlers.context import CallContext
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.security.access import Caller
from service.text.translator import Translator
from tests.unit.service.played import intake_of
from tests.unit.service.played_engine import PlayedEngine

LANGUAGES = {"source_language_code": "de", "target_language_code": "fr"}
CONTEXT = CallContext(Caller("alice"))


def catalog_of(played: PlayedEngine, manifest: Manifest, tokenizer: Tokenizer, pivot_language: str) -> Catalog:
    def model(source: str, target: str) -> ServedModel:
        languages = Languages.pair(source, target)
        own = manifest.model_copy(update={"name": f"{source}-{target}", "languages": languages})
        return ServedModel(own, 32, Pipeline(Translator(own, tokenizer), played.mailbox, intake_of(played.mailbox)))

    pairs = [("de", "en"), ("en", "fr"), ("de-CH", "en"), ("it", "en"), ("it", "fr")]
    return Catalog([model(*pair) for pair in pairs], pivot_language)


@pytest.fixture
async def engine(closed_played: PlayedEngine, manifest: Manifest, tokenizer: Tokenizer) -> AsyncIterator[PlayedEngine]:
    closed_played.gate.open(catalog_of(closed_played, manifest, tokenizer, "en"))

    async def play() -> None:
        while True:
            for decode in await closed_played.taken(1):
                closed_played.exhaust(decode)
            await asyncio.sleep(0)

    playing = asyncio.create_task(play())
    yield closed_played
    playing.cancel()


def check_first(translation: pb.TranslatedText, text: str) -> None:
    assert (translation.translated_text, translation.model, translation.pivot_model) == (text, "en-fr", "de-en")


async def test_a_text_goes_through_both_models_and_the_answer_names_them(engine: PlayedEngine) -> None:
    request = pb.TranslateTextRequest(contents=["tom. Good tom.", " ", "Good"], **LANGUAGES)
    answer = await engine.handlers.translate(request, CONTEXT)
    first, blank, last = answer.translations
    check_first(first, "tom. Good tom.")
    check_first(last, "Good")
    assert blank.translated_text == " "
    assert (first.segments, first.finish_reason) == (2, pb.FINISH_REASON_EOS)
    [record] = engine.records
    assert (record.model, record.code.name, record.segments) == ("de-en+en-fr", "OK", 6)


async def test_the_estimates_of_both_models_are_multiplied(engine: PlayedEngine) -> None:
    request = pb.TranslateTextRequest(contents=["tom", " "], options={"quality_estimate": True}, **LANGUAGES)
    answer, blank = (await engine.handlers.translate(request, CONTEXT)).translations
    assert answer.quality_estimate == round(0.8176 * 0.8176, 4)
    [quality] = answer.segment_qualities
    assert quality == pb.SegmentQuality(target_start=0, target_end=3, quality_estimate=answer.quality_estimate)
    assert not blank.HasField("quality_estimate")
    metrics = engine.metrics
    assert metrics.total("quality_estimate_count") == metrics.total("quality_estimate_count", model="en-fr") == 1
    assert metrics.total("quality_estimate_sum") == answer.quality_estimate


async def test_alignments_are_refused_where_two_models_translate(engine: PlayedEngine) -> None:
    request = pb.TranslateTextRequest(contents=["tom"], options={"alignments": True}, **LANGUAGES)
    with pytest.raises(InvalidRequestError, match=r"^options.alignments: .* two models translate: de-en and en-fr$"):
        await engine.handlers.translate(request, CONTEXT)


async def test_both_models_use_the_beam_and_the_second_gives_the_alternatives(
    closed_played, manifest, tokenizer
) -> None:
    closed_played.gate.open(catalog_of(closed_played, manifest, tokenizer, "en"))
    options = {"beam_size": 2, "length_penalty": 0.5, "alternatives": 2}
    request = pb.TranslateTextRequest(contents=["Good"], **LANGUAGES, options=options)
    call = asyncio.create_task(closed_played.handlers.translate(request, CONTEXT))
    for alternatives, reason in ((0, FinishReason.LENGTH), (2, FinishReason.EOS)):
        [decode] = await closed_played.taken(1, hypotheses=2)
        asked = decode.decoding
        assert (asked.beam_size, asked.length_penalty, asked.alternatives) == (2, 0.5, alternatives)
        ids = decode.source_ids[:-1]
        decode.hypotheses = [Hypothesis(ids, -1.0, -0.5, reason, 2), Hypothesis(ids * 2, -2.0, -1.0, reason, 3)]
        decode.target_ids.extend(ids)
        decode.finish(reason, 0.0)
        closed_played.mailbox.deliver([decode])
    [translation] = (await call).translations
    check_first(translation, "Good")
    assert [each.score for each in translation.alternatives] == [-0.5, -1.0]
    # What was cut off on its way into the pivot language lacks its end, whatever came of it.
    reasons = {translation.finish_reason, *(each.finish_reason for each in translation.alternatives)}
    assert reasons == {pb.FINISH_REASON_LENGTH}


async def test_a_stream_sends_what_the_second_model_writes(engine: PlayedEngine) -> None:
    request = pb.TranslateTextRequest(contents=["tom. Good tom.", "Good"], **LANGUAGES)
    joined, results = ["", ""], {}
    async for message in engine.handlers.stream(request, CONTEXT):
        joined[message.content_index] += message.text_delta
        if message.HasField("result"):
            results[message.content_index] = message.result
    assert joined == ["tom. Good tom.", "Good"]
    for number, text in enumerate(joined):
        check_first(results[number], text)


@pytest.mark.parametrize("in_order", [False, True])
async def test_a_batch_of_more_texts_than_its_window_holds(engine: PlayedEngine, in_order: bool) -> None:
    texts = [f"Good {'tom ' * (number % 3)}" for number in range(1_500)]  # of 1,024 at a time

    async def requests() -> AsyncIterator[pb.BatchTranslateTextRequest]:
        config = pb.BatchTranslateTextConfig(in_order=in_order, **LANGUAGES)
        yield pb.BatchTranslateTextRequest(config=config)
        for first in range(0, len(texts), 500):
            yield pb.BatchTranslateTextRequest(contents=texts[first : first + 500])

    answers = []
    async for message in batch(engine.handlers, requests(), CONTEXT):
        answers += message.translations
    numbers = [answer.content_index for answer in answers]
    assert sorted(numbers) == list(range(len(texts)))
    assert numbers == sorted(numbers) or not in_order
    for answer in answers:
        check_first(answer.translation, texts[answer.content_index])


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 100}], indirect=True)
@pytest.mark.parametrize("mime_type", ["text/plain", "text/html"])
async def test_a_call_of_more_bytes_than_a_batch_may_have_on_its_way_is_answered(engine, mime_type: str) -> None:
    texts = [f"{'Good tom. ' * 60}{number} tom." for number in range(4)]
    request = pb.TranslateTextRequest(contents=texts, mime_type=mime_type, **LANGUAGES)
    async with asyncio.timeout(60):
        answer = await engine.handlers.translate(request, CONTEXT)
    for translation, text in zip(answer.translations, texts, strict=True):
        check_first(translation, text)


async def test_a_text_that_the_first_model_cannot_take_has_its_error_and_the_others_go_on(engine) -> None:
    huge = "a" * 1_200_000
    answer = await engine.handlers.translate(pb.TranslateTextRequest(contents=[huge, "Good"], **LANGUAGES), CONTEXT)
    assert answer.translations[0].text_error.field == "contents[0]"
    assert (answer.translations[0].model, answer.translations[0].pivot_model) == ("en-fr", "de-en")
    check_first(answer.translations[1], "Good")


async def test_one_model_is_taken_where_there_is_one(engine: PlayedEngine) -> None:
    request = pb.TranslateTextRequest(contents=["Good"], source_language_code="it", target_language_code="fr")
    [translation] = (await engine.handlers.translate(request, CONTEXT)).translations
    assert (translation.model, translation.pivot_model) == ("it-fr", "")


@pytest.mark.parametrize("by", ["each", "both"])
async def test_an_engine_that_fails_ends_the_call_whichever_it_is(closed_played, manifest, tokenizer, by) -> None:
    closed_played.gate.open(catalog_of(closed_played, manifest, tokenizer, "en"))
    request = pb.TranslateTextRequest(contents=["Good"], **LANGUAGES)
    call = asyncio.create_task(closed_played.handlers.translate(request, CONTEXT))
    [decode] = await closed_played.taken(1)
    if by == "both":
        closed_played.exhaust(decode)
        [decode] = await closed_played.taken(1)
    decode.fail(InternalError("broken"), 0.0)
    closed_played.mailbox.deliver([decode])
    with pytest.raises(InternalError, match="broken"):
        await call
    assert closed_played.mailbox.unfinished == 0


async def test_a_call_that_is_cancelled_leaves_nothing_with_either_model(closed_played, manifest, tokenizer) -> None:
    closed_played.gate.open(catalog_of(closed_played, manifest, tokenizer, "en"))
    request = pb.TranslateTextRequest(contents=["Good", "tom"], **LANGUAGES)
    call = asyncio.create_task(closed_played.handlers.translate(request, CONTEXT))
    first, second = await closed_played.taken(2)
    closed_played.exhaust(first)
    [pivoted] = await closed_played.taken(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert second.cancel_requested  # with the first model
    assert pivoted.cancel_requested  # with the second


async def test_without_the_setting_there_is_no_such_pair(closed_played, manifest, tokenizer) -> None:
    closed_played.gate.open(catalog_of(closed_played, manifest, tokenizer, ""))
    with pytest.raises(UnknownLanguagePairError, match="no translation from 'de' to 'fr'"):
        await closed_played.handlers.translate(pb.TranslateTextRequest(contents=["x"], **LANGUAGES), CONTEXT)


def test_the_closest_models_are_taken_for_each_half(closed_played, manifest, tokenizer) -> None:
    catalog = catalog_of(closed_played, manifest, tokenizer, "en-GB")
    choice = catalog.choose("", "de-CH", "fr")
    assert (choice.model.manifest.name, choice.pivot.model.manifest.name) == ("en-fr", "de-CH-en")
    with pytest.raises(UnknownLanguagePairError):
        catalog.choose("en-fr", "de", "fr")  # a model that is named is meant


async def test_placeholders_are_kept_by_both_models_and_a_glossary_is_refused(engine: PlayedEngine) -> None:
    options = pb.TranslateOptions(protect_placeholders=True)
    request = pb.TranslateTextRequest(contents=["Good.", "{y}"], options=options, **LANGUAGES)
    first, last = (await engine.handlers.translate(request, CONTEXT)).translations
    assert (first.translated_text, last.translated_text) == ("Good.", "{y}")
    assert [*first.glossary_misses, *last.glossary_misses] == []
    request.options.glossary.names.append("names")
    with pytest.raises(InvalidRequestError, match="must be empty where two models translate") as refused:
        await engine.handlers.translate(request, CONTEXT)
    assert [field for field, _ in refused.value.violations] == ["options.glossary"]
