from collections import defaultdict

import grpc
import pytest

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

HTML = """<!DOCTYPE html>
<title>Good morning</title>
<p class="a &amp; b">Tom is <b>late</b>.<br>
Where is the <a href="/station?a=1&b=2">station</a>?</p>
<pre>I am kept.</pre><!-- So am I. -->
<p>She&nbsp;bought <i>12</i> books &amp; read &lt;them&gt;.</p>
"""


@pytest.fixture
def stub(server):
    with grpc.insecure_channel(server.address) as channel:
        yield TranslationStub(channel)


def request(*contents: str) -> pb.TranslateTextRequest:
    return pb.TranslateTextRequest(contents=contents, model="en-de", mime_type="text/html")


def test_text_is_translated_and_tags_are_kept(stub) -> None:
    [translation] = stub.TranslateText(request(HTML)).translations
    text = translation.translated_text
    kept = ["<!DOCTYPE html>\n<title>", '</title>\n<p class="a &amp; b">', "<b>", "</b>", "<br>\n"]
    kept += [
        '<a href="/station?a=1&b=2">',
        "</a>",
        "</p>\n<pre>I am kept.</pre><!-- So am I. -->\n<p>",
        "<i>",
        "</i>",
        "</p>\n",
    ]
    place = 0
    for piece in kept:
        place = text.index(piece, place) + len(piece)
    assert "Guten Morgen" in text
    assert "morning" not in text
    assert "Bahnhof" in text
    assert translation.segments == 4
    assert not translation.split


def test_the_deltas_of_html_are_the_unary_answer(stub) -> None:
    contents = [HTML, "", "<br>", "No tag & no reference.", "<p>Where is <b>Tom?</p></b> stray </i> <unfinished"]
    texts, results = defaultdict(str), {}
    for piece in stub.StreamTranslateText(request(*contents)):
        texts[piece.content_index] += piece.text_delta
        if piece.HasField("result"):
            results[piece.content_index] = piece.result
    unary = stub.TranslateText(request(*contents)).translations
    assert [results[index] for index in range(len(contents))] == list(unary)
    assert [texts[index] for index in range(len(contents))] == [answer.translated_text for answer in unary]
    assert [answer.translated_text for answer in unary][1:3] == ["", "<br>"]


def test_xml_has_its_own_rule(stub) -> None:
    asked = request('I have <x id="7"></x> apples. <p>Good morning.</p>')
    asked.mime_type = "text/xml"
    asked.options.xml_tags.splitting.append("p")
    [translation] = stub.TranslateText(asked).translations
    assert translation.translated_text == 'Ich habe <x id="7"></x> Äpfel. <p>Guten Morgen.</p>'


def test_a_sentence_that_was_split_inside_is_told(stub) -> None:
    contents = ["Tom, " * 300 + "come.", "Good morning. " * 100]
    answer = stub.TranslateText(pb.TranslateTextRequest(contents=contents, model="en-de"))
    assert [translation.split for translation in answer.translations] == [True, False]
    # The tokenizer of this model writes what it does not know in bytes.
    assert [translation.unknown_pieces for translation in answer.translations] == [0, 0]
