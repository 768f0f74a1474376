import pytest
from lxml import etree

from dragoman.documents.document import check_languages
from dragoman.documents.formats import say_language
from dragoman.documents.mixed import MixedText, Vocabulary
from dragoman.documents.xliff import XliffDocument
from tests.unit.dragoman.documents.pretend import translated

ONE = "urn:oasis:names:tc:xliff:document:1.2"
TWO = "urn:oasis:names:tc:xliff:document:2.0"


def one(body: str) -> bytes:
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<xliff xmlns="{ONE}" version="1.2"><file><body>'
    return f"{head}{body}</body></file></xliff>".encode()


def two(body: str) -> bytes:
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<xliff xmlns="{TWO}" version="2.0" srcLang="en"><file id="f">'
    return f"{head}{body}</file></xliff>".encode()


def texts(document: XliffDocument) -> list[str]:
    return [text.html for text in document.texts]


def test_a_unit_of_1_2_gets_a_target_behind_its_source() -> None:
    body = (
        '<trans-unit id="1">\n  <source xml:lang="en">Click <g id="1">here</g> & <x id="2"/>.</source>{}'
        "\n  <note>n</note></trans-unit>"
    ).replace("&", "&amp;")
    document = XliffDocument(one(body.format("")))
    assert texts(document) == ['Click <span id="0">here</span> &amp; {#1}.']
    target = '\n  <target state="translated">CLICK <g id="1">HERE</g> &amp; <x id="2"/>.</target>'
    assert translated(document) == one(body.format(target))


def test_a_target_of_1_2_is_behind_a_divided_source() -> None:
    body = (
        "<trans-unit>\n <source>one</source>\n <seg-source><mrk>one</mrk></seg-source>{}\n <note>n</note></trans-unit>"
    )
    expected = body.format('\n <target state="translated">ONE</target>')
    assert translated(XliffDocument(one(body.format("")))) == one(expected)


def test_a_segment_of_2_gets_a_target_and_a_state() -> None:
    body = (
        '<unit id="1"><segment{}><source>one <pc id="1">two</pc><ph id="2"/></source>{}</segment>'
        "<ignorable><source> and </source></ignorable></unit>"
    )
    target = '<target>ONE <pc id="1">TWO</pc><ph id="2"/></target>'
    expected = two(body.format(' state="translated"', target))
    assert translated(XliffDocument(two(body.format("", "")))) == expected
    assert translated(XliffDocument(two(body.format(' state="initial"', "<target/>")))) == expected


@pytest.mark.parametrize(
    "unit",
    [
        "<trans-unit><source>one</source><target>eins</target></trans-unit>",
        '<trans-unit approved="yes"><source>one</source><target/></trans-unit>',
        '<trans-unit translate="no"><source>one</source></trans-unit>',
        '<group translate="no"><trans-unit><source>one</source></trans-unit></group>',
        '<trans-unit><source>one</source><target><x id="1"/></target></trans-unit>',
        "<trans-unit><source>12</source></trans-unit>",
    ],
)
def test_units_that_are_translated_or_are_not_to_be_stay(unit: str) -> None:
    document = XliffDocument(one(unit))
    assert (texts(document), document.write([])) == ([], one(unit))


def test_a_target_that_is_marked_as_missing_is_replaced() -> None:
    unit = '<trans-unit><source>one</source><target xml:lang="de" state="{}">{}</target></trans-unit>'
    document = XliffDocument(one(unit.format("needs-translation", "one")))
    assert translated(document) == one(unit.format("translated", "ONE"))


class Uncounted(etree.ElementBase):
    def __len__(self) -> int:
        raise AssertionError("lxml goes through all children to count them")


def test_no_tag_takes_longer_to_write_the_more_tags_are_before_it() -> None:
    parser = etree.XMLParser()
    parser.set_element_class_lookup(etree.ElementDefaultClassLookup(element=Uncounted))
    content = '<source>one<x id="1"/>two<g id="2">three<x id="3"/></g>four</source>'
    element = etree.fromstring(content, parser)
    text = MixedText(
        element, Vocabulary(holds=lambda each: each.tag == "g", breaks=lambda _: False, stands=lambda _: False)
    )
    text.rewrite(text.tokens)
    assert etree.tostring(element).decode() == content


def test_what_is_marked_as_protected_is_kept_whole() -> None:
    source = '<source>the <mrk mtype="protected">name</mrk> <mrk mtype="term">is</mrk><ph id="1">code</ph></source>'
    document = XliffDocument(one(f"<trans-unit>{source}</trans-unit>"))
    assert texts(document) == ['the {#0} <span id="1">is</span><wbr id="2">']
    target = translated(document).decode().partition("<target")[2]
    assert '>THE <mrk mtype="protected">name</mrk> <mrk mtype="term">IS</mrk><ph id="1">code</ph></target>' in target


def test_elements_without_text_are_words_unless_they_touch_one_or_are_pictures() -> None:
    source = '<source>a <x id="1"/> <x id="2" ctype="x-b"/> b<x id="3"/> <x id="4"/>, <ph id="5">%s</ph></source>'
    document = XliffDocument(one(f"<trans-unit>{source}</trans-unit>"))
    assert texts(document) == ['a {#0} <wbr id="1"> b<wbr id="2"> {#3}, {#4}']
    assert (
        source.replace(" b<", " B<")[len("<source>a") : -len("</source>")]
        in translated(document).decode().partition("<target")[2]
    )


def test_no_word_touches_another_over_the_end_of_a_line() -> None:
    source = '<source>Name<x id="1" ctype="lb"/><x id="2"/> items<x id="3" ctype="lb"/>\n\t two</source>'
    document = XliffDocument(one(f"<trans-unit>{source}</trans-unit>"))
    assert texts(document) == ['Name<br id="0">{#1} items<br id="2"> two']


def test_tags_of_html_in_a_text_are_tags() -> None:
    source = (
        "<source>Log &lt;a href='x'&gt;in<g id='1'> &lt;b&gt;now</g>&lt;/a&gt;.&lt;br&gt;<![CDATA[<i>Hi</i>]]></source>"
    )
    document = XliffDocument(one(f"<trans-unit>{source}</trans-unit>"))
    html = 'Log <wbr id="0">in<span id="1"> <wbr id="2">now</span><wbr id="3">.<br id="4"><span id="5">Hi</span>'
    assert texts(document) == [html]
    target = "LOG &lt;a href='x'&gt;IN<g id=\"1\"> &lt;b&gt;NOW</g>&lt;/a&gt;.&lt;br&gt;&lt;i&gt;HI&lt;/i&gt;</target>"
    assert target in translated(document).decode()


def test_mnemonics_are_those_of_qt() -> None:
    unit = "<trans-unit><source>Save &amp;As _x</source></trans-unit>"
    assert texts(XliffDocument(one(unit))) == ["Save &amp;As _x"]
    trolltech = b' xmlns:trolltech="urn:trolltech:names:ts:document:1.0"'
    of_qt = XliffDocument(one(unit).replace(b' version="1.2"', trolltech))
    assert texts(of_qt) == ["Save As _x"]
    assert b">SAVE &amp;AS _X</target>" in translated(of_qt)


def test_character_references_of_a_text_of_html_are_written_again() -> None:
    document = XliffDocument(one("<trans-unit><source>a &amp;amp; b</source></trans-unit>"))
    assert texts(document) == ["a &amp; b"]
    assert b">A &amp;amp; B</target>" in translated(document)


def test_lines_are_kept_where_blanks_are() -> None:
    unit = '<trans-unit xml:space="preserve"><source>one\ntwo<x id="1" ctype="lb"/>three</source></trans-unit>'
    document = XliffDocument(one(unit))
    assert texts(document) == ['one<br id="0">two<br id="1">three']
    assert b'>ONE\nTWO<x id="1" ctype="lb"/>THREE</target>' in translated(document)
    assert texts(XliffDocument(one(unit.replace("preserve", "default")))) == ['one two<br id="0">three']


def test_where_there_is_no_translation_nothing_changes() -> None:
    content = one("<trans-unit><source>one</source></trans-unit>")
    assert XliffDocument(content).write([None]) == content
    assert etree.fromstring(translated(XliffDocument(content))).tag == f"{{{ONE}}}xliff"


def test_texts_are_named_by_their_lines_and_placeholders_are_protected() -> None:
    document = XliffDocument(one("\n\n<trans-unit><source>one</source></trans-unit>"))
    assert ([text.place for text in document.texts], document.protects_placeholders) == (["line 4"], True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"Hello.", "is no XML"),
        (b"<xliff/>", "is no XLIFF 1.2 or 2: its first element is 'xliff'"),
        (b'<!DOCTYPE xliff [<!ENTITY a "b">]><xliff>&a;</xliff>', "must have no document type"),
    ],
)
def test_another_file_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        XliffDocument(content)


@pytest.mark.parametrize(
    ("content", "before", "behind"),
    [
        (one("<trans-unit/>"), b"<file", b'<file target-language="de"'),
        (two("<unit/>"), b'srcLang="en"', b'srcLang="en" trgLang="de"'),
    ],
)
def test_a_file_that_does_not_say_the_language_of_its_targets_gets_it(content: bytes, before, behind) -> None:
    said = content.replace(before, behind)
    assert say_language("a.XLF", content, "en", "de") == said
    assert say_language("a.xliff", said, "en", "fr") == said
    assert say_language("a.xlf", content, "en", "") == content


def test_the_languages_of_a_file_are_told() -> None:
    files = '<file source-language="en" target-language="{}"></file>'
    content = one("<trans-unit/>").replace(b"<file>", f"{files.format('fr')}{files.format('de')}<file>".encode())
    where = "source-language and target-language"
    stated = [("", "", where), ("en", "de", where), ("en", "fr", where)]
    assert XliffDocument(content).languages == stated
    languages = XliffDocument(two("<unit/>")).languages
    assert languages == [("en", "", "srcLang and trgLang")]
    with pytest.raises(ValueError, match=r"^says that it is for en to any \(srcLang and trgLang\), not for de to fr$"):
        check_languages("a.xlf", languages, "de", "fr")
