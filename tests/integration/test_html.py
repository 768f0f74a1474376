"""The committed model translates what is between the tags of HTML, and nothing else."""

from pathlib import Path

import pytest
from turbohtml import TokenType, tokenize

from dragoman.bundle import Bundle
from dragoman.tokenizer import Tokenizer
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from service.options import RequestOptions
from service.text.translator import Translator

BUNDLE = Path(__file__).parents[2] / "models" / "en-de" / "bundle"
TEXTS = (TokenType.TEXT, TokenType.CHARACTER_REFERENCE)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.open(BUNDLE)


def translate(bundle: Bundle, texts: list[str], *, html: bool = True) -> list[str]:
    translator = Translator(bundle.manifest, Tokenizer.open(bundle.path))
    engine = OfflineEngine(bundle, threads=1, slots=16)
    return [result.text for result in translate_offline(translator, engine, texts, RequestOptions(has_tags=html))]


def tags(html: str) -> list[str | None]:
    tokens = tokenize(html, resolve_references=False, capture_source=True)
    return [token.source for token in tokens if token.type not in TEXTS]


HTML = [
    "<p>Where is the <b>station</b>?</p>",
    "<p>I saw <b>Tom</b> and <i class='x'>Mary</i> at the station.</p>",
    "<h1>Good morning!</h1><ul><li>She reads a book.<li>He &amp; I sleep.</ul>",
    "<p>It costs <em>12</em> euros.<br>That is <strong>too much</strong>.</p>",
    "<a href='?a=1&b=2'>The train leaves at eight.</a> <!-- Not this. -->",
    "<p>Press <kbd>Enter</kbd> now.</p><pre>Press nothing.</pre>",
]


def test_tags_are_kept_and_text_is_translated(bundle: Bundle) -> None:
    translations = translate(bundle, HTML)
    assert [tags(translation) for translation in translations] == [tags(html) for html in HTML]
    assert "<b>Tom</b>" in translations[1]
    assert "<em>12</em>" in translations[3]
    assert "<kbd>Enter</kbd>" in translations[5]
    assert "<pre>Press nothing.</pre>" in translations[5]
    for word in ("station", "Good", "book", "sleep", "much", "train"):
        assert word not in "".join(translations)


def test_a_sentence_is_translated_as_it_is_without_tags(bundle: Bundle) -> None:
    plain = ["Where is the station?", "She reads a book."]
    [one, two] = translate(bundle, plain, html=False)
    html = "<p>Where <i>is</i> the <b>station</b>?</p><div>She<!-- --> reads\na book.</div>"
    [translation] = translate(bundle, [html])
    for tag in tags(html):
        translation = translation.replace(str(tag), "", 1)
    assert translation == one + two


def test_no_tag_goes_into_an_address(bundle: Bundle) -> None:
    html = [
        'The value of <a href="x">it</a> is https://example.com/a?b.',
        'Open <img src="i.png"> https://example.com/a.',
    ]
    link, picture = translate(bundle, html)
    assert "https://example.com/a?b" in link
    assert "https://example.com/a" in picture
    assert [tags(link), tags(picture)] == [tags(each) for each in html]


@pytest.mark.parametrize(
    "kept",
    ["<code>name</code>", "<kbd>pip install requests</kbd>", "<b translate=no>Save as</b>", "<code>a. B | c</code>"],
)
def test_the_model_reads_a_name_in_place_of_a_kept_element(bundle: Bundle, kept: str) -> None:
    name = bundle.manifest.stand_ins[0]
    [translation] = translate(bundle, [f"<p>The file of {kept} is empty.</p>"])
    [named] = translate(bundle, [f"<p>The file of {name} is empty.</p>"])
    assert translation == named.replace(name, kept)


def test_a_kept_element_does_not_make_a_sentence_too_long(bundle: Bundle) -> None:
    kept = "<code>kubectl get pods --namespace=default --output=wide --watch</code>"
    sentence = (
        f"Before you start, please run the command {kept} and wait until it says {kept}, and then run {kept} again."
    )
    [result] = translate_offline(
        Translator(bundle.manifest, Tokenizer.open(bundle.path)),
        OfflineEngine(bundle, threads=1, slots=4),
        [sentence],
        RequestOptions(has_tags=True),
    )
    assert (result.segments, result.split, result.text.count(kept)) == (1, False, 3)
