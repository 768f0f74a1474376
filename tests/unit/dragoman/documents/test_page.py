import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.documents.formats import say_language
from dragoman.documents.page import HtmlDocument
from tests.unit.dragoman.documents.pretend import translated

PAGE = """<!doctype html>
<html lang="en"><head><title>One & <two></title>
<meta name="description" content="a page"><meta name=viewport content="width=device-width">
<meta property='og:title' content='Fish &amp; "chips"'><link rel="stylesheet" title="kept" href="a.css">
<script>"<img alt='kept'>"</script><style title="kept"></style></head>
<body><!-- <img alt="kept"> --><p title=three class="x" title="kept">One &amp; <b>two</b></p>
<IMG SRC="a.png" Alt="a > red
cat"/><input placeholder = 'four' value="kept"><input placeholder="12" alt>
<button aria-label="five" data-title="kept">x</button>
<div translate="no" title="kept"><div alt="kept"></div><img alt="kept"></div><br class="notranslate" title="kept">
<textarea title="six"><img alt="kept"></textarea></body></html>
"""


def test_a_page_is_one_text() -> None:
    content = b"<!doctype html><p>One &amp; <b>two</b></p>\r\n"
    assert [text.html for text in HtmlDocument(content).texts] == [content.decode()]
    assert translated(HtmlDocument(content)) == b"<!doctype html><p>ONE &amp; <b>TWO</b></p>\r\n"
    assert HtmlDocument(content).write([None]) == content
    assert HtmlDocument(b"12").write([]) == b"12"


def test_attributes_that_people_read_are_texts() -> None:
    document = HtmlDocument(PAGE.encode())
    assert [(text.html, text.place) for text in document.texts[1:]] == [
        ("a page", "attribute in line 3"),
        ('Fish &amp; "chips"', "attribute in line 4"),
        ("three", "attribute in line 6"),
        ("a &gt; red\ncat", "attribute in line 7"),
        ("four", "attribute in line 8"),
        ("five", "attribute in line 9"),
        ("six", "attribute in line 11"),
    ]
    expected = (
        PAGE.replace('"a page"', '"A PAGE"')
        .replace("""'Fish &amp; "chips"'""", '"FISH &amp; &quot;CHIPS&quot;"')
        .replace("=three", '="THREE"')
        .replace("a > red\ncat", "A &gt; RED\nCAT")
        .replace("'four'", '"FOUR"')
        .replace('"five"', '"FIVE"')
        .replace('"six"', '"SIX"')
    )
    page, *values = (text.html for text in document.texts)
    assert document.write([page, *(value.upper().replace("&AMP;", "&").replace("&GT;", ">") for value in values)]) == (
        expected.encode()
    )


@pytest.mark.parametrize(
    ("page", "attributes"),
    [
        ('<ul><li translate="no">Brand <img alt="kept"><li>We <img alt="a dog"></ul>', ["a dog"]),
        ('<td class="notranslate">Brand</b><td><img alt="a dog"></td>', ["a dog"]),
        ('<p translate="no">Brand<div><p translate="no"><img alt="kept"></div><img alt="a dog">', ["a dog"]),
        ('<b translate="no">Brand</b> <img alt="a dog"><p>We', ["a dog"]),
        ('<div translate="no">Brand<p><img alt="kept"></div><img alt="a dog">', ["a dog"]),
        ('<b translate="no">Brand <img alt="kept">', []),
    ],
)
def test_a_kept_element_without_an_end_ends_before_the_next_block(page: str, attributes: list[str]) -> None:
    assert [text.html for text in HtmlDocument(page.encode()).texts[1:]] == attributes


def test_long_attributes_are_no_part_of_the_text() -> None:
    page = f'<p>one <img src="data:,{"x" * 2_000_000}" alt="two"> three<a href={"y" * 1_001}>four</a>'.encode()
    document = HtmlDocument(page)
    assert len(document.texts[0].html) < 200
    assert [text.html for text in document.texts[1:]] == ["two"]
    [text, value] = [text.html for text in document.texts]
    assert document.write([text, value.upper()]) == page.replace(b"two", b"TWO")


@pytest.mark.parametrize(
    ("tag", "attributes"),
    [
        ('<input type="submit" value="one" title="two">', ["one", "two"]),
        ("<input TYPE=Reset value=one>", ["one"]),
        ("<input type=button value=one>", ["one"]),
        ("<input type=text value=kept label=kept>", []),
        ("<track label=one kind=captions>", ["one"]),
        ("<select><optgroup label=one><option label=two value=kept></select>", ["one", "two"]),
        ("<p aria-description=one aria-roledescription=two aria-valuetext=three>", ["one", "two", "three"]),
        ("<meta property=og:image:alt content=one><meta name=twitter:image:alt content=two>", ["one", "two"]),
    ],
)
def test_attributes_of_controls_and_pictures_are_texts(tag: str, attributes: list[str]) -> None:
    assert [text.html for text in HtmlDocument(tag.encode()).texts[1:]] == attributes


@pytest.mark.parametrize(
    ("head", "written"),
    [
        ("", "M&#228;use"),
        ('<meta charset="windows-1252">', "M&#228;use"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">', "M&#228;use"),
        ("<meta charset=latin1><meta charset=utf-8>", "M&#228;use"),
        ("<meta charset=UTF-8>", "Mäuse"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=utf-8">', "Mäuse"),
        ("<meta http-equiv=content-type content='text/html;Charset = UTF-8; x'>", "Mäuse"),
        ("""<meta http-equiv="Content-Type" content="text/html; charset='utf-8'">""", "Mäuse"),
        ('<meta name="keywords" content="charset=latin1"><meta charset="utf-8">', "Mäuse"),
        ('<meta name="keywords" content="charset=utf-8">', "M&#228;use"),
        ("<?xml version='1.0' encoding='UTF-8'?>", "Mäuse"),
        ("<?xml version='1.0' encoding='latin1'?><meta charset=utf-8>", "M&#228;use"),
        ("<!-- ä -->", "Mäuse"),
    ],
)
def test_a_page_in_ascii_stays_so_if_it_does_not_say_that_it_is_utf_8(head: str, written: str) -> None:
    page = head + '<p title="{0}">{0}'
    document = HtmlDocument(page.format("mice").encode())
    translation = document.texts[0].html.replace("mice", "Mäuse")
    assert document.write([translation, "Mäuse"]).decode() == page.format(written)


def test_attributes_go_with_their_tags() -> None:
    document = HtmlDocument(b'<p><img alt="one"> two <img alt="three"></p>')
    [first, second] = document.texts[0].html.removeprefix("<p>").removesuffix("</p>").split(" two ")
    assert document.write([f"<p>{second} zwei {first}</p>", None, "drei"]) == (
        b'<p><img alt="drei"> zwei <img alt="one"></p>'
    )


@pytest.mark.parametrize(
    ("root", "source", "target", "expected"),
    [
        ('<html lang="en">', "en", "de", '<html lang="de">'),
        (
            "<!doctype html><HTML class=a LANG=en-GB dir=ltr>",
            "EN",
            "DE",
            '<!doctype html><HTML class=a LANG="de" dir=ltr>',
        ),
        ('<html lang="en">', "en-US", "PT-BR", '<html lang="pt-BR">'),
        ('<html lang="en">', "", "de", '<html lang="de">'),
        ('<html lang="fr">', "en", "de", '<html lang="fr">'),
        ('<html><p lang="en">', "en", "de", '<html><p lang="en">'),
        ('<html lang="en">', "en", "", '<html lang="en">'),
        ('<html xml:lang="en-US" lang=en-US>', "en", "de", '<html xml:lang="de" lang="de">'),
        ('<html lang="fr" xml:lang="en">', "en", "de", '<html lang="fr" xml:lang="de">'),
    ],
)
def test_the_root_says_the_language_of_a_translation(root: str, source: str, target: str, expected: str) -> None:
    assert say_language("a.HTM", f"{root}ä".encode(), source, target) == f"{expected}ä".encode()
    assert say_language("a.txt", root.encode(), source, target) == root.encode()


def test_where_there_is_no_translation_nothing_changes() -> None:
    document = HtmlDocument(PAGE.encode())
    assert document.write([None] * len(document.texts)) == PAGE.encode()


@pytest.mark.parametrize(
    "page",
    [
        '<img alt="cut off',
        '<img alt="a"',
        "<!-- <img alt=a>",
        "<script><img alt=a>",
        "<img alt=>a",
        "< img alt=a>",
        "<![CDATA[<img alt=a",
    ],
)
def test_broken_tags_have_no_attributes(page: str) -> None:
    assert len(HtmlDocument(page.encode()).texts) == 1


@pytest.mark.parametrize("tag", ["<p =a>", "<p class='a'=b>", "<p ==>", "<p = =>", "<p =a title>", "<p a==b>"])
def test_an_equals_sign_without_a_name_begins_an_attribute(tag: str) -> None:
    assert [text.html for text in HtmlDocument(f'{tag}<img alt="a dog">'.encode()).texts[1:]] == ["a dog"]


@given(st.lists(st.sampled_from([*"<>/='\"! -", "alt", "title", "img", "<script>", "</script>", "a", "\n"])))
def test_any_page_comes_back(pieces: list[str]) -> None:
    content = "".join(pieces).encode()
    document = HtmlDocument(content)
    assert document.write([None] * len(document.texts)) == content


def test_many_tags_that_stay_open_do_not_take_long() -> None:
    for piece in ("<a ", '<a b="', "<!--", "<script>", "<p translate=no>", "<a b='", "</a", "<?"):
        content = piece.encode() * 200_000
        assert HtmlDocument(content).write([None]) == content


def test_other_charsets_are_refused() -> None:
    with pytest.raises(ValueError, match="is not UTF-8"):
        HtmlDocument(b"caf\xe9")
