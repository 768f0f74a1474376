"""Texts whose language is detected: the handlers with an engine that repeats what it reads."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from dragoman.bundle import Manifest
from dragoman.errors import (
    DeadlineExceededError,
    DrainingError,
    InternalError,
    InvalidRequestError,
    LoadingError,
    UnknownLanguagePairError,
)
from dragoman.language_marks import LanguageMarks, Languages
from dragoman.tokenizer import Tokenizer
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.method import batch
from plugins.detection.detector import LanguageDetector
from plugins.scoring.method import score
from service.handlers.context import CallContext
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.security.access import Caller
from service.text.translator import Translator
from tests.unit.service.played import intake_of
from tests.unit.service.played_engine import PlayedEngine

CONTEXT = CallContext(Caller("alice"))
GERMAN = "Wo ist der Bahnhof?"
FRENCH = "Où est la gare?"
ITALIAN = "Dove si trova la stazione ferroviaria?"
ENGLISH = "Where is the station?"


def model_of(played: PlayedEngine, manifest: Manifest, tokenizer: Tokenizer, languages: Languages, name: str):
    own = manifest.model_copy(update={"name": name, "languages": languages})
    return ServedModel(own, 32, Pipeline(Translator(own, tokenizer), played.mailbox, intake_of(played.mailbox)))


def many() -> Languages:
    marks = {code: LanguageMarks(source_prefix=(place,)) for place, code in enumerate(("ja", "ko"))}
    return Languages(sources=("ja", "ko"), targets=("ja", "nl"), marks=marks)


@pytest.fixture
def catalog(closed_played: PlayedEngine, manifest: Manifest, tokenizer: Tokenizer) -> Catalog:
    pairs = [("de", "en"), ("fr", "en"), ("en", "it")]
    models = [model_of(closed_played, manifest, tokenizer, Languages.pair(*pair), "-".join(pair)) for pair in pairs]
    return Catalog([*models, model_of(closed_played, manifest, tokenizer, many(), "many")], "en")


@pytest.fixture
def stopped(closed_played: PlayedEngine, catalog: Catalog) -> PlayedEngine:
    """One that the test plays."""
    closed_played.gate.open(catalog)
    return closed_played


@pytest.fixture
async def engine(stopped: PlayedEngine) -> AsyncIterator[PlayedEngine]:
    """One that plays by itself."""

    async def play() -> None:
        while True:
            for decode in await stopped.taken(1):
                stopped.exhaust(decode)
            await asyncio.sleep(0)

    playing = asyncio.create_task(play())
    yield stopped
    playing.cancel()


def request_of(*texts: str, target: str = "en", **fields) -> pb.TranslateTextRequest:
    fields = {"source_language_code": "auto"} | fields
    return pb.TranslateTextRequest(contents=texts, target_language_code=target, **fields)


async def translated(engine: PlayedEngine, *texts: str, **fields) -> list[pb.TranslatedText]:
    return list((await engine.handlers.translate(request_of(*texts, **fields), CONTEXT)).translations)


def ways(translations: list[pb.TranslatedText]) -> list[tuple[str, str]]:
    return [(each.detected_language_code, each.model) for each in translations]


@pytest.mark.parametrize("source", ["auto", "AUTO", ""])
async def test_each_text_goes_to_the_model_of_its_language(engine: PlayedEngine, source: str) -> None:
    texts = [GERMAN, FRENCH, "123", GERMAN + " tom"]
    made = await translated(engine, *texts, source_language_code=source)
    assert [each.translated_text for each in made] == texts
    assert ways(made) == [("de", "de-en"), ("fr", "fr-en"), ("", "de-en"), ("de", "de-en")]
    assert all(each.detection_confidence > 0.5 for each in made if each.detected_language_code)
    assert made[2].detection_confidence == 0
    [record] = engine.records
    assert (record.model, record.code.name, record.texts, record.failed_texts) == ("de-en,fr-en", "OK", 4, 0)
    assert engine.count("detected_texts_total", "de") == 2


async def test_where_one_language_can_be_meant_empty_detects_nothing(engine: PlayedEngine) -> None:
    [by_target] = await translated(engine, GERMAN, target="it", model="en-it", source_language_code="")
    assert ways([by_target]) == [("", "en-it")]
    [named] = await translated(engine, GERMAN, model="fr-en", source_language_code="")
    assert ways([named]) == [("", "fr-en")]
    [said] = await translated(engine, GERMAN, source_language_code="fr")
    assert ways([said]) == [("", "fr-en")]


async def test_a_model_that_must_be_told_is(engine: PlayedEngine) -> None:
    for fields in ({"model": "many"}, {"model": "many", "source_language_code": ""}, {"source_language_code": ""}):
        made = await translated(engine, "駅はどこですか。", "역은 어디입니까?", target="nl", **fields)
        assert ways(made) == [("ja", "many"), ("ko", "many")]


async def test_a_text_may_go_over_a_third_language(engine: PlayedEngine) -> None:
    german, english = await translated(engine, GERMAN, ENGLISH, target="it")
    assert (german.detected_language_code, german.model, german.pivot_model) == ("de", "en-it", "de-en")
    assert (english.detected_language_code, english.model, english.pivot_model) == ("en", "en-it", "")


async def test_a_language_that_is_not_served_is_an_error_of_its_text(engine: PlayedEngine) -> None:
    german, italian, english = await translated(engine, GERMAN, ITALIAN, ENGLISH)
    assert ways([german, italian, english]) == [("de", "de-en"), ("it", ""), ("en", "")]
    error = italian.text_error
    assert (error.reason, error.field) == ("UNKNOWN_LANGUAGE_PAIR", "contents[1]")
    assert error.metadata == {"source_language_code": "it", "target_language_code": "en", "model": ""}
    assert error.message.startswith("contents[1]: is in 'it', as detected (confidence ")
    assert error.message.endswith("there is translation into 'en' from de, fr")
    assert english.text_error.field == "contents[2]"
    assert engine.records[0].failed_texts == 2
    assert engine.count("detected_texts_total", "it") == 1


async def test_protocols_whose_clients_expect_each_text_get_it_or_an_error_that_is_written_down(engine) -> None:
    handlers, (returned, failed) = engine.handlers, (request_of(GERMAN, ENGLISH), request_of(GERMAN, ITALIAN))
    answer = await handlers.translate(returned, CONTEXT, or_return=True)
    assert [each.translated_text for each in answer.translations] == [GERMAN, ENGLISH]
    with pytest.raises(UnknownLanguagePairError, match=r"^contents\[1\]: is in 'it'") as refused:
        await handlers.translate(failed, CONTEXT, or_return=True)
    good, bad = engine.records
    assert (good.code.name, good.failed_texts, answer.request_id) == ("OK", 0, good.request_id)
    assert (bad.code.name, bad.failed_texts, refused.value.request_id) == ("INVALID_ARGUMENT", 0, bad.request_id)


async def test_a_language_of_nobody_counts_as_other(engine: PlayedEngine) -> None:
    [russian] = await translated(engine, "Где находится вокзал?")
    assert ways([russian]) == [("ru", "")]
    assert russian.text_error.reason == "UNKNOWN_LANGUAGE_PAIR"
    assert engine.count("detected_texts_total", "other") == 1
    assert engine.metrics.total("detected_texts_total", language="ru") == 0


async def test_all_or_nothing_names_all_such_texts(engine: PlayedEngine) -> None:
    with pytest.raises(UnknownLanguagePairError, match=r"^contents\[1\]: is in 'it'.* \(and 1 more\)$") as refused:
        await translated(engine, GERMAN, ITALIAN, ITALIAN, all_or_nothing=True)
    assert [field for field, _ in refused.value.violations] == ["contents[1]", "contents[2]"]
    assert refused.value.metadata["source_language_code"] == "it"


async def test_one_model_detects_where_it_is_asked_to(engine: PlayedEngine) -> None:
    with pytest.raises(UnknownLanguagePairError, match="there is translation by model en-it into 'it' from en"):
        await translated(engine, FRENCH, target="it", model="en-it", all_or_nothing=True)
    made = await translated(engine, ENGLISH, "42", "", target="it", model="en-it")
    assert ways(made) == [("en", "en-it"), ("", "en-it"), ("", "en-it")]
    made = await translated(engine, "42")
    assert ways(made) == [("", "de-en")]  # the first language


async def test_a_text_that_is_too_large_has_its_own_number(engine: PlayedEngine) -> None:
    made = await translated(engine, FRENCH, "a " * 600_000, GERMAN)
    assert made[1].text_error.field == "contents[1]"
    assert made[1].text_error.message.startswith("contents[1]: must be at most")
    assert [each.model for each in made] == ["fr-en", "", "de-en"]
    with pytest.raises(InvalidRequestError, match=r"^contents\[1\]: must be at most"):
        await translated(engine, FRENCH, "a " * 600_000, all_or_nothing=True)


async def test_of_html_the_text_counts(engine: PlayedEngine) -> None:
    html = '<p title="the station of the city">Bahnhof und Flughafen</p>'
    [made] = await translated(engine, html, mime_type="text/html")
    assert (made.translated_text, made.detected_language_code) == (html, "de")


async def test_a_stream_of_several_languages(engine: PlayedEngine) -> None:
    texts = [GERMAN, ITALIAN, FRENCH, "7"]
    joined, results = [""] * len(texts), {}
    async for message in engine.handlers.stream(request_of(*texts), CONTEXT):
        joined[message.content_index] += message.text_delta
        if message.HasField("result"):
            results[message.content_index] = message.result
    assert joined == [GERMAN, "", FRENCH, "7"]
    made = [results[number] for number in range(len(texts))]
    assert ways(made) == [("de", "de-en"), ("it", ""), ("fr", "fr-en"), ("", "de-en")]
    assert [each.translated_text for each in made] == joined
    assert made[1].text_error.field == "contents[1]"
    nothing = [message async for message in engine.handlers.stream(request_of(ITALIAN), CONTEXT)]
    assert [message.result.text_error.reason for message in nothing] == ["UNKNOWN_LANGUAGE_PAIR"]
    with pytest.raises(UnknownLanguagePairError):
        [message async for message in engine.handlers.stream(request_of(*texts, all_or_nothing=True), CONTEXT)]


async def test_a_thousand_texts(engine: PlayedEngine) -> None:
    texts = [(GERMAN, FRENCH, "7")[number % 3] for number in range(1_000)]
    made = await translated(engine, *texts)
    assert [each.translated_text for each in made] == texts
    assert ways(made)[:3] == [("de", "de-en"), ("fr", "fr-en"), ("", "de-en")]
    assert len(set(ways(made))) == 3


@pytest.mark.parametrize("place", [0, 1])
async def test_an_engine_that_fails_ends_the_call_and_all_is_withdrawn(stopped: PlayedEngine, place: int) -> None:
    call = asyncio.create_task(translated(stopped, GERMAN, FRENCH))
    decodes = await stopped.taken(2)
    decodes[place].fail(InternalError("broken"), 0.0)
    stopped.mailbox.deliver([decodes[place]])
    with pytest.raises(InternalError, match="broken"):
        await call
    assert decodes[1 - place].cancel_requested


async def test_a_call_that_is_cancelled_leaves_nothing_with_any_model(stopped: PlayedEngine) -> None:
    call = asyncio.create_task(translated(stopped, GERMAN, FRENCH))
    decodes = await stopped.taken(2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert all(decode.cancel_requested for decode in decodes)


async def test_a_deadline_holds_for_all_parts(stopped: PlayedEngine) -> None:
    loop = asyncio.get_running_loop()
    context = CallContext(Caller("alice"), deadline_s=loop.time() - 1)
    with pytest.raises(DeadlineExceededError):
        await stopped.handlers.translate(request_of(GERMAN, FRENCH), context)
    with pytest.raises(DeadlineExceededError):
        await stopped.handlers.detect(pb.DetectLanguageRequest(contents=[GERMAN] * 100), context)
    assert len(stopped.mailbox.waiting) == 0


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"mime_type": "x", "request_id": "a b"}, ["mime_type", "request_id"]),
        ({"target": ""}, ["target_language_code"]),
        ({"target": "", "model": "many"}, ["target_language_code"]),
        ({"target": "de_DE"}, ["target_language_code"]),
        ({"options": {"max_target_tokens": 99}}, ["options.max_target_tokens"]),
        ({"source_language_code": "automatic"}, ["source_language_code"]),
    ],
)
async def test_what_is_wrong_with_the_request_is_named(engine: PlayedEngine, fields: dict, bad: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        await translated(engine, GERMAN, **fields)
    assert [field for field, _ in refused.value.violations] == bad


async def test_a_target_of_nobody_is_an_unknown_pair(engine: PlayedEngine) -> None:
    for source in ("auto", ""):
        with pytest.raises(UnknownLanguagePairError, match="no translation from any language to 'sv'"):
            await translated(engine, GERMAN, target="sv", source_language_code=source)


async def test_methods_that_detect_nothing_say_so(engine: PlayedEngine) -> None:
    async def requests(**fields) -> AsyncIterator[pb.BatchTranslateTextRequest]:
        yield pb.BatchTranslateTextRequest(config=pb.BatchTranslateTextConfig(**fields))
        yield pb.BatchTranslateTextRequest(contents=[GERMAN])

    rule = "must name the language, which this method does not detect (DetectLanguage does); the models read: de, fr"
    for source in ("auto", ""):
        asked = {"source_language_code": source, "target_language_code": "en"}
        with pytest.raises(InvalidRequestError) as refused:
            [message async for message in batch(engine.handlers, requests(**asked), CONTEXT)]
        assert refused.value.violations == [("config.source_language_code", rule)]
        with pytest.raises(InvalidRequestError) as refused:
            await score(engine.handlers, pb.ScoreTextRequest(pairs=[pb.TextPair()], **asked), CONTEXT)
        assert refused.value.violations == [("source_language_code", rule)]
    answers = [message async for message in batch(engine.handlers, requests(target_language_code="ja"), CONTEXT)]
    assert [each.translation.model for message in answers for each in message.translations] == ["many"]


async def test_what_one_model_refuses_no_model_begins(closed_played, manifest: Manifest, tokenizer, catalog) -> None:
    own = manifest.model_copy(update={"name": "fr-en", "languages": Languages.pair("fr", "en")})
    mailbox = Mailbox(9)
    mailbox.close()
    closed = ServedModel(own, 32, Pipeline(Translator(own, tokenizer), mailbox, intake_of(mailbox)))
    others = (model for model in catalog if model.manifest.name != "fr-en")
    closed_played.gate.open(Catalog([closed, *others]))
    with pytest.raises(DrainingError):
        await translated(closed_played, GERMAN, FRENCH)
    assert len(closed_played.mailbox.waiting) == 0


async def test_what_every_model_refuses_is_refused_before_languages_are_detected(closed_played, catalog) -> None:
    closed_played.gate.open(catalog)
    closed_played.mailbox.close()
    with pytest.raises(DrainingError):
        await translated(closed_played, GERMAN, FRENCH)
    assert closed_played.metrics.total("detected_texts_total") == 0


async def test_languages_are_detected_for_their_own_sake(engine: PlayedEngine) -> None:
    request = pb.DetectLanguageRequest(contents=[GERMAN, "42", ITALIAN], request_id="mine")
    answer = await engine.handlers.detect(request, CONTEXT)
    german, nothing, italian = answer.detections
    assert (german.languages[0].language_code, italian.languages[0].language_code) == ("de", "it")
    assert len(german.languages) == 5
    assert [each.confidence for each in german.languages] == sorted(
        (each.confidence for each in german.languages), reverse=True
    )
    assert list(nothing.languages) == []
    assert answer.request_id == "mine"
    [record] = engine.records
    assert (record.method, record.caller, record.code.name, record.texts) == ("DetectLanguage", "alice", "OK", 3)
    assert engine.count("detected_texts_total", "it") == 1


async def test_hostile_texts_are_detected_too(engine: PlayedEngine) -> None:
    texts = ["a" * 1_000_000, "\x00" * 1_000, "Я вижу 你好 hello", "<" * 100_000, "\u202e\ufeff", "Ä" * 3]
    for mime_type in ("text/plain", "text/html"):
        request = pb.DetectLanguageRequest(contents=texts * 2, mime_type=mime_type)
        answer = await engine.handlers.detect(request, CONTEXT)
        assert len(answer.detections) == 2 * len(texts)
        assert answer.detections[: len(texts)] == answer.detections[len(texts) :]


async def test_the_limits_of_detection(engine: PlayedEngine, closed_played) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        await engine.handlers.detect(pb.DetectLanguageRequest(mime_type="x", request_id="a b"), CONTEXT)
    assert [field for field, _ in refused.value.violations] == ["contents", "mime_type", "request_id"]
    with pytest.raises(InvalidRequestError, match="must hold 1 to 1024 texts, holds 1025"):
        await engine.handlers.detect(pb.DetectLanguageRequest(contents=[""] * 1_025), CONTEXT)


async def test_nothing_is_detected_before_the_models_are_loaded(closed_played: PlayedEngine) -> None:
    with pytest.raises(LoadingError):
        await closed_played.handlers.detect(pb.DetectLanguageRequest(contents=[GERMAN]), CONTEXT)


async def test_what_hinders_detection_from_being_read_is_logged_at_once(played, monkeypatch) -> None:
    def load(_: LanguageDetector) -> None:
        raise OSError("no such file")

    monkeypatch.setattr(LanguageDetector, "load", load)
    with capture_logs() as log:
        await played.handlers.languages.load()
    [line] = log
    assert (line["log_level"], line["error"]) == ("error", "OSError")
