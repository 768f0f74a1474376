"""ScoreText, as any transport calls it; the tests play the engine."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dragoman.errors import (
    AnswerTooLargeError,
    InternalError,
    InvalidRequestError,
    QueueFullError,
    TextFailedError,
    UnknownLanguagePairError,
)
from dragoman.language_marks import Languages
from dragoman.v1 import translation_pb2 as pb
from plugins.scoring import method
from service.decode import Decode, FinishReason
from service.handlers.context import CallContext
from service.options import SCORING, Priority, RequestOptions
from service.registry.catalog import Catalog, Choice, Pipeline, ServedModel
from service.security.access import Caller
from service.settings import Settings
from service.text.translator import Translator
from tests.unit.service.played import intake_of
from tests.unit.service.played_engine import PlayedEngine, until

CONTEXT = CallContext(Caller("alice"))


def request_of(*pairs: tuple[str, str], **fields: object) -> pb.ScoreTextRequest:
    made = [pb.TextPair(source_text=source, target_text=target) for source, target in pairs]
    return pb.ScoreTextRequest(pairs=made, **{"model": "en-de", **fields})


def score(played: PlayedEngine, decode: Decode) -> None:
    """Finds each token half as probable as the one before it."""
    decode.target_ids.extend(decode.scored_ids[:-1])
    decode.token_log_probabilities = [-1.0 * place for place in range(len(decode.scored_ids))]
    decode.log_probability = sum(decode.token_log_probabilities)
    decode.finish(FinishReason.EOS, 0.0)
    played.mailbox.deliver([decode])


async def play(played: PlayedEngine) -> None:
    while True:
        for decode in await played.taken(1):
            score(played, decode)
        await asyncio.sleep(0)


@pytest.fixture
async def engine(played: PlayedEngine) -> AsyncIterator[PlayedEngine]:
    """One that plays by itself."""
    playing = asyncio.create_task(play(played))
    yield played
    playing.cancel()


async def test_each_pair_has_its_score_in_order(engine, tokenizer) -> None:
    pairs = [("tom", "good tom"), ("Where is the station?", "Wo ist der Bahnhof?"), ("tom", "tom")]
    answer = await method.score(engine.handlers, request_of(*pairs, request_id="mine"), CONTEXT)
    assert answer.request_id == "mine"
    for (source, target), found in zip(pairs, answer.scores, strict=True):
        ids = [*tokenizer.encode_target(target), 2]
        assert [token.piece for token in found.tokens] == tokenizer.target_pieces(ids)
        assert [token.log_probability for token in found.tokens] == [-1.0 * place for place in range(len(ids))]
        assert found.log_probability == -sum(range(len(ids)))
        assert found.mean_log_probability == found.log_probability / len(ids)
        assert (found.source_tokens, found.target_tokens) == (len(tokenizer.encode(source)), len(ids) - 1)
        assert (found.model, found.HasField("text_error")) == ("en-de", False)
    [record] = engine.records
    assert (record.method, record.caller, record.model, record.code.name) == ("ScoreText", "alice", "en-de", "OK")
    assert (record.texts, record.segments, record.failed_texts) == (3, 3, 0)
    assert engine.count("requests_total", "ScoreText", "OK") == 1


async def test_segments_have_what_the_call_asks_for(played) -> None:
    context = CallContext(Caller("alice"), deadline_s=asyncio.get_running_loop().time() + 60)
    call = asyncio.create_task(
        method.score(played.handlers, request_of(("tom", "tom"), priority="PRIORITY_BULK"), context)
    )
    [decode] = await played.taken(1)
    assert (decode.decoding, decode.client, decode.priority) == (SCORING, "alice", Priority.BULK)
    assert decode.deadline_s == context.deadline_s
    score(played, decode)
    await call


@pytest.mark.parametrize("many", [0, 300])
async def test_a_pair_that_cannot_be_scored_has_its_error_and_the_others_have_scores(engine, many: int) -> None:
    pairs = [("tom", "x" * 40), ("tom", "tom"), *[("tom", "tom")] * many, ("", "tom")]
    answer = await method.score(engine.handlers, request_of(*pairs), CONTEXT)
    long, good, *_, empty = answer.scores
    assert (long.text_error.reason, long.text_error.field) == ("INVALID_REQUEST", "pairs[0].target_text")
    assert "must be at most 31 tokens of the model, is " in long.text_error.message
    assert empty.text_error.field == f"pairs[{len(pairs) - 1}].source_text"
    assert (good.target_tokens, long.model, len(long.tokens)) == (3, "en-de", 0)
    assert engine.records[0].failed_texts == 2


@pytest.mark.parametrize("many", [0, 300])
async def test_a_bad_pair_ends_a_call_of_all_or_nothing(engine, many: int) -> None:
    pairs = [("tom", "x" * 40), *[("tom", "tom")] * many, ("", "tom")]
    with pytest.raises(InvalidRequestError) as refused:
        await method.score(engine.handlers, request_of(*pairs, all_or_nothing=True), CONTEXT)
    assert refused.value.violations[0].field == "pairs[0].target_text"
    await until(lambda: engine.mailbox.unfinished == 0)


async def test_a_pair_on_which_the_engine_fails_has_that_error(played) -> None:
    call = asyncio.create_task(method.score(played.handlers, request_of(("tom", "tom"), ("good", "tom")), CONTEXT))
    first, second = await played.taken(2)
    first.fail(TextFailedError("it fails"), 0.0)
    played.mailbox.deliver([first])
    score(played, second)
    bad, good = (await call).scores
    assert (bad.text_error.reason, good.HasField("text_error")) == ("TEXT_FAILED", False)


async def test_an_engine_that_is_broken_ends_the_call_and_so_does_a_cancellation(played) -> None:
    call = asyncio.create_task(method.score(played.handlers, request_of(("tom", "tom")), CONTEXT))
    [decode] = await played.taken(1)
    decode.fail(InternalError("broken"), 0.0)
    played.mailbox.deliver([decode])
    with pytest.raises(InternalError, match="broken"):
        await call
    call = asyncio.create_task(method.score(played.handlers, request_of(("tom", "tom")), CONTEXT))
    [decode] = await played.taken(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert decode.cancel_requested
    assert [record.code.name for record in played.records] == ["INTERNAL", "CANCELLED"]


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 32}], indirect=True)
async def test_a_full_queue_refuses_pairs(played) -> None:
    first = asyncio.create_task(method.score(played.handlers, request_of(*[("good morning tom", "tom")] * 9), CONTEXT))
    await until(lambda: len(played.mailbox.waiting) > 0)
    with pytest.raises(QueueFullError):
        await method.score(played.handlers, request_of(*[("good morning tom", "tom")] * 9), CONTEXT)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.parametrize("server_settings", [{"queue_source_tokens": 64}], indirect=True)
async def test_a_long_translation_fills_the_queue_as_a_long_source_does(played) -> None:
    first = asyncio.create_task(method.score(played.handlers, request_of(*[("tom", "good morning tom")] * 8), CONTEXT))
    await until(lambda: len(played.mailbox.waiting) > 0)
    with pytest.raises(QueueFullError):  # else it would wait for the engine, which does nothing
        async with asyncio.timeout(20):
            await method.score(played.handlers, request_of(*[("tom", "good morning tom")] * 8), CONTEXT)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        (0, "must hold 1 to 1024 pairs, holds 0"),
        (1025, "must hold 1 to 1024 pairs, holds 1025"),
    ],
)
async def test_the_number_of_pairs_is_bounded(played, pairs: int, said: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        await method.score(played.handlers, request_of(*[("a", "b")] * pairs), CONTEXT)
    assert refused.value.violations == [("pairs", said)]


async def test_of_too_many_pairs_the_texts_are_not_measured(played) -> None:
    text = "b" * (Settings().max_answer_bytes // 8 // 1000)  # together they are too large, too
    with pytest.raises(InvalidRequestError) as refused:
        await method.score(played.handlers, request_of(*[("a", text)] * 1025), CONTEXT)
    assert refused.value.violations == [("pairs", "must hold 1 to 1024 pairs, holds 1025")]


async def test_all_that_is_wrong_is_named(played) -> None:
    size = Settings().max_answer_bytes // 8
    asked = request_of(("a", "b" * (size + 1)), source_language_code="English", request_id="a b", priority=9)
    with pytest.raises(InvalidRequestError) as refused:
        await method.score(played.handlers, asked, CONTEXT)
    found = dict(refused.value.violations)
    assert found.keys() == {"pairs", "source_language_code", "request_id", "priority"}
    assert f"at most {size} bytes together, has {size + 1}" in found["pairs"]


@pytest.mark.parametrize("server_settings", [{"max_answer_bytes": 65_536}], indirect=True)
async def test_scores_that_no_message_can_hold_are_an_error(engine) -> None:
    # Tokens of a byte each: their scores take more than a message has for that number of bytes.
    pairs = [("tom", "x" * 25)] * 300
    assert sum(len(target) for _, target in pairs) <= 65_536 // 8
    with pytest.raises(AnswerTooLargeError):
        await method.score(engine.handlers, request_of(*pairs), CONTEXT)


async def test_two_models_have_no_score(closed_played, manifest, tokenizer) -> None:
    models = [
        ServedModel(
            each, 32, Pipeline(Translator(each, tokenizer), closed_played.mailbox, intake_of(closed_played.mailbox))
        )
        for each in (
            manifest.model_copy(update={"name": f"{source}-{target}", "languages": Languages.pair(source, target)})
            for source, target in (("de", "en"), ("en", "fr"))
        )
    ]
    closed_played.gate.open(Catalog(models, "en"))
    asked = request_of(("a", "b"), model="", source_language_code="de", target_language_code="fr")
    with pytest.raises(UnknownLanguagePairError, match="over a third language has no score"):
        await method.score(closed_played.handlers, asked, CONTEXT)


def test_scores_have_their_mean() -> None:
    asked = pb.ScoreTextRequest(priority=pb.PRIORITY_BULK)
    assert method.options_of(asked, Choice(None, "en-GB", "de")) == RequestOptions(
        decoding=SCORING,
        priority=Priority.BULK,
        source_language="en-GB",
        target_language="de",
        mean_log_probability=True,
    )
