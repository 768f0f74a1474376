import asyncio
import operator
from dataclasses import replace

import pytest

from dragoman import AsyncClient, Translation

SENTENCES = [
    "Good morning.",
    "Where is the station?",
    "I have never been to Berlin.",
    "She reads a book every evening before she goes to sleep.",
    "It's raining!",
    "Tom told me that he would come back tomorrow.",
]


def test_english_becomes_german(client) -> None:
    translation = client.translate("Good morning.", source_language="en", target_language="de")
    assert "Morgen" in translation.text
    assert translation.model == "en-de"
    assert translation.finish_reason == "EOS"
    assert translation.segments == 1
    assert 0 < translation.source_tokens < 10
    assert 0 < translation.target_tokens < 10


@pytest.mark.parametrize(
    "languages",
    [
        {"source_language": "EN", "target_language": "De"},
        {"source_language": "en-US", "target_language": "de-AT"},
        {"model": "en-de"},
        {"model": "en-de", "source_language": "en"},
    ],
)
def test_ways_to_name_the_model(client, languages) -> None:
    assert client.translate(SENTENCES[0], **languages) == client.translate(
        SENTENCES[0], source_language="en", target_language="de"
    )


def test_translations_come_in_the_order_of_the_texts(client) -> None:
    together = client.translate(SENTENCES, model="en-de")
    alone = [client.translate(sentence, model="en-de") for sentence in SENTENCES]
    assert together == alone


def test_a_translation_does_not_depend_on_who_else_is_served(uncached) -> None:
    async def translate_all() -> list[Translation]:
        async with AsyncClient(uncached.address, timeout_s=120, wait_when_busy=True) as client:
            asking = [[i % 6, i % 5 == 0] for i in range(120)]  # of each sentence, every fifth
            calls = [
                client.translate(SENTENCES[number], model="en-de", mean_log_probability=asks) for number, asks in asking
            ]
            return list(await asyncio.gather(*calls))

    translations = asyncio.run(translate_all())
    assert [translation.text for translation in translations] == [t.text for t in translations[:6]] * 20
    assert translations == translations[:30] * 4


def test_a_text_is_translated_sentence_by_sentence_and_keeps_its_separators(client) -> None:
    text = f"  {SENTENCES[0]} {SENTENCES[1]}\r\n\r\n\t{SENTENCES[2]}\u00a0"
    parts = [translation.text for translation in client.translate(SENTENCES[:3], model="en-de")]
    translation = client.translate(text, model="en-de")
    assert translation.text == f"  {parts[0]} {parts[1]}\r\n\r\n\t{parts[2]}\u00a0"
    assert translation.segments == 3


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\x00", "...", "\u3000", "😀", "\u200b"])
def test_a_text_without_words_translates_to_itself(client, server, text) -> None:
    before = server.metric("source_tokens_total")
    translation = client.translate(text, model="en-de")
    assert (translation.text, translation.segments, translation.finish_reason) == (text, 0, "EOS")
    assert translation.source_tokens == translation.target_tokens == 0
    assert server.metric("source_tokens_total") == before


@pytest.mark.parametrize(
    "text",
    [
        "I love 😀 and 👩‍👩‍👧 a lot.",
        "Nul\x00 and bell\x07 and escape\x1b[31m.",
        "你好，世界。我很好！",
        "Z̸a̷l̵g̶o̷ text",
        "\ufeffByte order mark",
        "\U0010ffff last character",
        "x" * 1_000,
        "<b>markup</b> & entities;",
        "{'json': [1, 2.5e-3]}",
    ],
)
def test_unusual_texts_are_translated(client, text) -> None:
    translation = client.translate(text, model="en-de")
    assert translation.finish_reason in ("EOS", "LENGTH", "REPETITION")
    assert translation.segments >= 1
    for character in "\x00\x07\x1b":
        assert translation.text.count(character) == text.count(character)


def test_the_limit_of_target_tokens_is_said(client) -> None:
    cut, whole = (client.translate(SENTENCES[3], model="en-de", max_target_tokens=tokens) for tokens in (2, 0))
    assert (cut.finish_reason, cut.target_tokens) == ("LENGTH", 2)
    assert whole.finish_reason == "EOS"


def test_how_sure_the_model_was_is_said_to_who_asks(client) -> None:
    texts = [" ".join(SENTENCES[:2]), *SENTENCES[:2], "", " \n"]
    asked = client.translate(texts, model="en-de", mean_log_probability=True)
    not_asked = client.translate(texts, model="en-de")
    assert [translation.mean_log_probability for translation in not_asked] == [None] * len(texts)
    assert [replace(translation, mean_log_probability=None) for translation in asked] == not_asked
    together, first, second, *empty = asked
    assert [translation.mean_log_probability for translation in empty] == [None, None]
    tokens = [translation.target_tokens + 1 for translation in (first, second)]  # each with its end-of-sentence token
    parts = [translation.mean_log_probability for translation in (first, second)]
    assert all(-5 < part < 0 for part in parts)
    assert together.mean_log_probability == pytest.approx(
        sum(map(operator.mul, parts, tokens)) / sum(tokens), rel=1e-12
    )


def test_the_model_is_less_sure_of_nonsense(client) -> None:
    sense, nonsense = client.translate(
        ["Good morning.", "Morning qzx blorf station never wumpf."], model="en-de", mean_log_probability=True
    )
    assert nonsense.mean_log_probability < sense.mean_log_probability


def test_a_long_sentence_is_split_and_translated_whole(client) -> None:
    text = ", ".join(["we went to the station and we waited there for the train"] * 60)
    translation = client.translate(text, model="en-de")
    assert 2 <= translation.segments <= 60
    assert translation.source_tokens > 60 * 8


def test_a_megabyte_is_translated(client) -> None:
    lines = [SENTENCES[2], "-" * 1_000] * 1_000
    line = client.translate(SENTENCES[2], model="en-de")
    translation = client.translate("\n".join(lines), model="en-de")
    assert translation.segments == 1_000
    assert translation.text == "\n".join([line.text, "-" * 1_000] * 1_000)


def test_the_models_are_listed(client) -> None:
    [model] = client.list_models()
    assert (model.name, model.source_language, model.target_language) == ("en-de", "en", "de")
    assert model.precision == "int8"
    assert model.max_source_tokens > 16
    assert model.max_target_tokens > 16
    assert len(model.checkpoint_sha256) == 64


def test_one_alternative_of_a_greedy_decode_is_the_translation_with_its_scores(client) -> None:
    texts = [*SENTENCES, " ".join(SENTENCES), " "]
    plain = client.translate(texts, model="en-de", beam_size=1, mean_log_probability=True)
    for one, translation in zip(
        plain, client.translate(texts, model="en-de", beam_size=1, alternatives=1, length_penalty=2.0), strict=True
    ):
        [alternative] = translation.alternatives
        assert (alternative.text, alternative.finish_reason, translation.beam_size) == (one.text, one.finish_reason, 1)
        assert alternative.mean_log_probability == (one.mean_log_probability or 0.0)
        assert translation.mean_log_probability is None
        if one.segments <= 1:
            assert alternative.score == pytest.approx(alternative.mean_log_probability)
