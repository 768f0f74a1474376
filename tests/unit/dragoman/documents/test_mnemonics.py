import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.inline import Kind, Token, from_html, to_html
from dragoman.documents.mnemonics import Label


def label(text: str, marks: str = "&_") -> Label:
    return Label.read([Token(Kind.TEXT, text)], marks)


def source(tokens: list[Token]) -> str:
    return "".join(token.text for token in tokens)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("&File", "File"),
        ("Save &As...", "Save As..."),
        ("_Open", "Open"),
        ("E&xit", "Exit"),
        ("Cu_t", "Cut"),
        ("&1 of %s", "1 of %s"),
        ("_Open %(file_name)s", "Open %(file_name)s"),
        ("Find && &Replace", "Find & Replace"),
        ("&&&File", "&File"),
        ("Drag && Drop", "Drag & Drop"),
        ("R&D of &Tom", "R&D of Tom"),
        ("文件(&F)...", "文件..."),
        ("(_1)", "(1)"),
        ("Page (&2)", "Page (2)"),
        ("Tom &amp; I", "Tom & I"),
        ("_Save &amp; Close", "Save & Close"),
        ("&copy; 5&nbsp;km &#8217; &#x201C; caf&eacute;", "© 5\xa0km ’ “ café"),
        ("&lt;b> &none; &copy;", "<b> &none; ©"),
    ],
)
def test_the_model_reads_neither_a_mark_nor_character_references(text: str, shown: str) -> None:
    read = label(text)
    assert source(read.tokens) == shown
    assert source(read.written(read.tokens)) == text


@pytest.mark.parametrize("text", ["แฟ้ม(&F)", "ملف (&F)"])
def test_a_letter_in_brackets_behind_any_text_without_small_letters_is_left_out(text: str) -> None:
    assert source(label(text).tokens) == text.removesuffix("(&F)").rstrip()


@pytest.mark.parametrize(
    "text",
    [
        "AT&T, R&D, Q & A, Drag&Drop",
        "R&D; Tom &amp; I &none;",
        "one&#10;two",
        "https://example.com/?a=b&c=d and ?a=b&c=d",
        "a file_name",
        "_this_ and _so is that_",
        "{_name} %(_name)s $_name",
        "_Open or _Close",
        "&Open or &Close",
        "a & b && c",
        "100 %",
    ],
)
def test_a_text_without_one_mark_stays(text: str) -> None:
    read = label(text)
    assert source(read.tokens) == text
    assert source(read.written(read.tokens)) == text


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("&File", "Datei", "&Datei"),
        ("Save &As", "Speichern als", "Speichern &als"),
        ("_Quit", "Antiquiert quittieren", "Antiquiert _quittieren"),
        ("E&xit", "Text", "Te&xt"),
        ("&Size of %s", "%s: Größe", "%s: &Größe"),
        ("&Name", "{name} 12 Titel", "{name} 12 &Titel"),
        ("&1 file", "Datei", "&Datei"),
        ("&File", "12", "&12"),
        ("&File", "…", "…"),
        ("&Find && Replace", "Suchen & Ersetzen", "&Suchen && Ersetzen"),
        ("&Open...", "打开...", "打开(&O)..."),
        ("文件(&F)", "Datei", "&Datei"),
    ],
)
def test_a_translation_has_a_mark_again(text: str, translation: str, expected: str) -> None:
    assert source(label(text).written([Token(Kind.TEXT, translation)])) == expected


@pytest.mark.parametrize(
    ("text", "shown", "translation", "expected"),
    [
        ("Tom &amp; Jerry&#39;s isn't", "Tom &amp; Jerry{#0}s isn't", "Tom &amp; J{#0}", "Tom &amp; J&#39;"),
        ("A &amp; B&#10;C &nbsp; D", "A &amp; B{#0}C \xa0 D", "C &amp;{#0}\xa0B", "C &amp;&#10;&nbsp;B"),
        ("&lt;Enter&gt; if x < 5 &amp; y", "{#0}Enter&gt; if x &lt; 5 &amp; y", "5 &lt;{#0}&amp;", "5 <&lt;&amp;"),
        ("&Copy &amp; paste in &kate;", "Copy &amp; paste in {#0}", "In {#0} &amp; zu", "&In &kate; &amp; zu"),
        ("Use &kate; now", "Use {#0} now", "Jetzt {#0}", "Jetzt &kate;"),
    ],
)
def test_references_that_stay_are_kept_words(text: str, shown: str, translation: str, expected: str) -> None:
    read = label(text)
    assert to_html(read.tokens) == shown
    assert source(read.written(from_html(translation, read.tokens))) == expected


def test_kept_references_have_numbers_that_no_tag_has() -> None:
    tokens = [Token(Kind.BEGIN, tag=3), Token(Kind.TEXT, "A&#10;B&#9;"), Token(Kind.END, tag=3)]
    read = Label.read(tokens, "")
    assert to_html(read.tokens) == '<span id="3">A{#4}B{#5}</span>'
    assert source(read.written(read.tokens)) == "A&#10;B&#9;"


def test_an_underscore_is_no_mark_of_qt() -> None:
    assert source(label("_Open", "&").tokens) == "_Open"
    assert source(label("Drag && Drop", "").tokens) == "Drag && Drop"


def test_a_mark_stands_in_one_of_several_tokens() -> None:
    tokens = [Token(Kind.TEXT, "Click "), Token(Kind.BEGIN, tag=0), Token(Kind.TEXT, "&here"), Token(Kind.END, tag=0)]
    read = Label.read(tokens, "&")
    assert [token.text for token in read.tokens] == ["Click ", "", "here", ""]
    assert [token.text for token in read.written(read.tokens)] == ["Click ", "", "&here", ""]


@given(st.text(alphabet="aB &_%{}();1"))
def test_any_text_has_its_mark_once_again(text: str) -> None:
    read = label(text)
    written = source(read.written(read.tokens))
    assert (written.replace("&", "").replace("_", ""), len(written)) == (
        text.replace("&", "").replace("_", ""),
        len(text),
    )
