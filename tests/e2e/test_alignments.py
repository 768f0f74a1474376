"""Which words became which, by a real server: the same by every way, and the places of tags."""

import asyncio
import re

import pytest

from dragoman import AsyncClient, Translation
from tests.server_process import PATIENCE_S

TEXT = "Where is the station?\n\nTomorrow I will read the book. 😀"
OTHERS = ["Good morning.", "Tom told me that he would come back tomorrow."]
ALIGNED = {"model": "en-de", "alignments": True}


def words(source: str, translation: Translation) -> set[tuple[str, str]]:
    return {
        (source[each.source_start : each.source_end], translation.text[each.target_start : each.target_end])
        for each in translation.alignments
    }


def test_words_of_a_text_have_their_places(client) -> None:
    translation = client.translate(TEXT, **ALIGNED)
    expected = {("Where", "Wo"), ("station", "Bahnhof"), ("Tomorrow", "Morgen"), ("read", "lesen"), ("book", "Buch")}
    assert expected <= words(TEXT, translation)
    places = [each.target_start for each in translation.alignments]
    assert places == sorted(places)
    assert all(0.4 <= each.weight <= 1 for each in translation.alignments)
    plain = client.translate(TEXT, model="en-de")
    assert (plain.text, plain.alignments) == (translation.text, ())


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_method_gives_the_same_alignments_in_any_company(client, server, beam_size: int) -> None:
    texts = [TEXT, *OTHERS, " "]
    alone = [client.translate(text, **ALIGNED, beam_size=beam_size) for text in texts]
    assert [result.translation for result in client.translate_many(texts, **ALIGNED, beam_size=beam_size)] == alone
    pieces = client.stream(texts, **ALIGNED, beam_size=beam_size)
    results = {piece.content_index: piece.result for piece in pieces if piece.result is not None}
    assert [results[index] for index in range(len(texts))] == alone

    async def translate_all() -> list[list[Translation]]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S, wait_when_busy=True) as other:
            calls = [other.translate(texts, **ALIGNED, beam_size=1 + number % 4) for number in range(8)]
            return list(await asyncio.gather(*calls))

    assert asyncio.run(translate_all())[beam_size - 1] == alone


def test_tags_go_where_their_words_went(client) -> None:
    html = "<p><b>Tomorrow</b> I will <i>read</i> the <a href='#'>book</a>.</p>"
    for options in ({}, {"beam_size": 4, "alternatives": 4}):
        translation = client.translate(html, model="en-de", mime_type="text/html", **options)
        assert "<b>Morgen</b>" in translation.text
        assert translation.text.index("<a href='#'>Buch</a>") < translation.text.index("<i>lesen</i>")
        for text in (translation.text, *(each.text for each in translation.alternatives)):
            assert sorted(re.findall("<[^>]+>", text)) == sorted(re.findall("<[^>]+>", html))
