import io
import zipfile

import docx
import pptx
import pytest

from dragoman.documents import safe_xml
from dragoman.documents.office import OfficeDocument, read_docx, read_odt, read_pptx
from tests.unit.dragoman.documents.made import ODT_CONTENT, odt, slides, word, zipped
from tests.unit.dragoman.documents.pretend import translated

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def texts(document: OfficeDocument) -> list[str]:
    return [text.html for text in document.texts]


def member(content: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return archive.read(name).decode()


def paragraph(body: str) -> OfficeDocument:
    """A Word document of one paragraph."""
    part = f"<w:document {W}><w:body><w:p><w:pPr/>{body}</w:p></w:body></w:document>"
    return read_docx(zipped({"word/document.xml": part}))


def rewritten(body: str, *translations: str) -> str:
    written = member(paragraph(body).write(list(translations)), "word/document.xml")
    return written.partition("<w:pPr/>")[2].partition("</w:p></w:body>")[0].replace(' xml:space="preserve"', "")


def test_word_reads_what_was_translated() -> None:
    document = read_docx(word())
    assert sorted(texts(document)) == [
        "A title",
        'Where did you <span id="0">learn</span> to cook?',
        "a cell",
        "a header",
    ]
    written = docx.Document(io.BytesIO(translated(document)))
    title, question = written.paragraphs[:2]
    assert (title.text, title.style.name, question.text) == ("A TITLE", "Heading 1", "WHERE DID YOU LEARN TO COOK?")
    assert [(run.text, run.bold) for run in question.runs] == [
        ("WHERE DID YOU ", None),
        ("LEARN", True),
        (" TO COOK?", None),
    ]
    assert [cell.text for cell in written.tables[0].rows[0].cells] == ["A CELL", "12"]
    assert written.sections[0].header.paragraphs[0].text == "A HEADER"


def test_bold_goes_where_its_word_goes() -> None:
    document = read_docx(word())
    question = texts(document).index('Where did you <span id="0">learn</span> to cook?')
    translations: list[str | None] = [None] * len(document.texts)
    translations[question] = 'Wo hast du kochen <span id="0">gelernt</span>?'
    runs = docx.Document(io.BytesIO(document.write(translations))).paragraphs[1].runs
    assert [(run.text, run.bold) for run in runs] == [("Wo hast du kochen ", None), ("gelernt", True), ("?", None)]


def test_powerpoint_reads_what_was_translated() -> None:
    [slide] = pptx.Presentation(io.BytesIO(translated(read_pptx(slides())))).slides
    assert slide.shapes.title.text == "A TITLE"
    runs = slide.placeholders[1].text_frame.paragraphs[0].runs
    assert [(run.text, run.font.bold) for run in runs] == [("ONE ", False), ("TWO", True), (" THREE", False)]
    assert slide.notes_slide.notes_text_frame.text == "A NOTE"


def test_a_diagram_is_translated_as_data_and_as_a_picture() -> None:
    names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:d="{}"'
    data = names.format("http://schemas.openxmlformats.org/drawingml/2006/diagram")
    drawing = names.format("http://schemas.microsoft.com/office/drawing/2008/diagram")
    body = "<a:p><a:r><a:t>one</a:t></a:r></a:p>"
    written = translated(
        read_pptx(
            zipped(
                {
                    "ppt/diagrams/data1.xml": f"<d:dataModel {data}>{body}</d:dataModel>",
                    "ppt/diagrams/drawing1.xml": f"<d:drawing {drawing}>{body}</d:drawing>",
                }
            )
        )
    )
    for name in ("data", "drawing"):
        assert "<a:t>ONE</a:t>" in member(written, f"ppt/diagrams/{name}1.xml")


def test_only_the_words_of_an_odt_file_change() -> None:
    expected = ODT_CONTENT.replace('<text:s text:c="2"/>', " ")
    for words in ("A title", "a note", "a cell"):
        expected = expected.replace(f">{words}<", f">{words.upper()}<")
    for before, behind in (("one <", "ONE <"), (">two", ">TWO"), (" three", " THREE"), (">link", ">LINK")):
        expected = expected.replace(before, behind)
    expected = expected.replace("four five", "FOUR FIVE").replace("six<", "SIX<")
    written = translated(read_odt(odt()))
    assert member(written, "content.xml") == expected
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        first = archive.infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


def test_a_field_of_an_odt_file_is_a_word() -> None:
    field = '<text:bookmark-ref text:ref-name="a">Table 2</text:bookmark-ref>'
    document = read_odt(odt(ODT_CONTENT.replace("A title", f"See {field} and <text:bookmark/>this.")))
    assert texts(document)[0] == 'See {#0} and <wbr id="1">this.'
    assert f"SEE {field} AND" in member(translated(document), "content.xml")


def test_comments_of_an_odt_file_are_not_translated() -> None:
    comment = "<office:annotation><text:p>a comment</text:p></office:annotation>"
    content = ODT_CONTENT.replace(">12<", f">one{comment} two<")
    document = read_odt(odt(content))
    assert texts(document)[-1] == 'one<wbr id="0"> two'
    assert f">ONE{comment} TWO<" in member(translated(document), "content.xml")


def test_blanks_at_the_ends_of_a_paragraph_of_odt_stay_elements() -> None:
    body = (
        '<text:s text:c="4"/><text:span text:style-name="B"> <text:s/>{}<text:s/>{}</text:span>{}'
        '<text:span text:style-name="C"><text:s/>{}</text:span> <text:s text:c="2"/>'
    )
    document = read_odt(odt(ODT_CONTENT.replace("A title", body.format("one", "two", ".", "three"))))
    assert texts(document)[0] == '<span id="0"> one two</span>.<span id="1"> three</span> '
    others = [None] * (len(document.texts) - 1)
    written = member(document.write(['<span id="0">a b</span>: <span id="1">c</span>', *others]), "content.xml")
    expected = (
        '<text:s text:c="4"/><text:s/><text:span text:style-name="B">a b</text:span>: '
        '<text:span text:style-name="C">c</text:span><text:s text:c="2"/>'
    )
    assert f">{expected}</text:h>" in written


@pytest.mark.parametrize("paragraph", ["one {}", "{} one", "one {}, two"])
def test_blanks_with_a_format_of_their_own_keep_it(paragraph: str) -> None:
    line = '<text:span text:style-name="U"> <text:s text:c="20"/></text:span>'
    document = read_odt(odt(ODT_CONTENT.replace("A title", paragraph.format(line))))
    assert texts(document)[0] == paragraph.format('<wbr id="0">')
    assert f">{paragraph.upper().format(line)}</text:h>" in member(translated(document), "content.xml")


def test_where_there_is_no_translation_the_parts_stay() -> None:
    for content, read, name in (
        (odt(), read_odt, "content.xml"),
        (word(), read_docx, "word/document.xml"),
        (slides(), read_pptx, "ppt/slides/slide1.xml"),
    ):
        document = read(content)
        before, behind = member(content, name), member(document.write([None] * len(document.texts)), name)
        assert behind.partition("?>")[2].strip() == before.partition("?>")[2].strip()


def test_runs_that_look_alike_are_one() -> None:
    body = (
        '<w:r w:rsidR="1"><w:t>Good </w:t></w:r><w:proofErr w:type="spellStart"/>'
        '<w:r><w:rPr><w:lang w:val="en-GB"/></w:rPr><w:t>mor</w:t></w:r><w:r><w:rPr/><w:t>ning</w:t></w:r>'
    )
    assert texts(paragraph(body)) == ["Good morning"]
    assert rewritten(body, "Moin") == "<w:r><w:t>Moin</w:t></w:r>"


def test_links_and_changes_keep_their_elements() -> None:
    body = (
        "<w:r><w:t>see </w:t></w:r>"
        '<w:hyperlink w:anchor="a"><w:r><w:rPr><w:u/></w:rPr><w:t>this</w:t></w:r></w:hyperlink>'
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:sdt><w:sdtPr/><w:sdtContent><w:r><w:t> now</w:t></w:r>"
        "</w:sdtContent></w:sdt>"
    )
    html = 'see <span id="0"><span id="1">this</span></span><wbr id="2"><span id="3"> now</span>'
    assert texts(paragraph(body)) == [html]
    assert rewritten(body, html) == body
    moved = rewritten(body, '<span id="3">nun</span> <span id="0"><span id="1">das</span></span><wbr id="2">')
    assert moved.index("nun") < moved.index("w:hyperlink") < moved.index("<w:u/>") < moved.index("das")


@pytest.mark.parametrize("name", ["customXml", "smartTag"])
def test_the_text_of_marked_words_is_translated_behind_their_properties(name: str) -> None:
    body = f"<w:{name}><w:{name}Pr/><w:r><w:t>one</w:t></w:r></w:{name}><w:r><w:t> two</w:t></w:r>"
    assert texts(paragraph(body)) == ['<span id="0">one</span> two']
    assert rewritten(body, '<span id="0">one</span> two') == body


def test_breaks_pictures_and_notes_stay() -> None:
    body = (
        "<w:r><w:t>one</w:t><w:br/><w:t>two</w:t><w:tab/></w:r>"
        '<w:r><w:drawing/></w:r><w:bookmarkStart w:id="1"/>'
        '<w:r><w:rPr><w:vanish/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
    )
    html = 'one<br id="0">two<br id="1"><wbr id="2"><wbr id="3"><wbr id="4">'
    assert texts(paragraph(body)) == [html]
    expected = "".join(f"<w:r>{child}</w:r>" for child in ("<w:t>one</w:t>", "<w:br/>", "<w:t>two</w:t>", "<w:tab/>"))
    assert rewritten(body, html) == expected + body.partition("</w:r>")[2]


def field(code: str, result: str) -> str:
    def mark(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    return f"{mark('begin')}<w:r><w:instrText> {code} </w:instrText></w:r>{mark('separate')}{result}{mark('end')}"


def test_fields_stay_and_the_text_of_links_is_translated() -> None:
    body = f"<w:r><w:t>Page </w:t></w:r>{field('PAGE', '<w:r><w:t>three</w:t></w:r>')}"
    assert texts(paragraph(body)) == ["Page {#0}"]
    assert rewritten(body, "Page {#0}") == body
    assert paragraph(body).protects_placeholders
    link = field('HYPERLINK "http://example.com"', "<w:r><w:t>there</w:t></w:r>") + "<w:r><w:t> it is</w:t></w:r>"
    assert texts(paragraph(link)) == ['<span id="0">there</span> it is']
    assert rewritten(link, '<span id="0">there</span> it is') == link
    assert not paragraph(link).protects_placeholders


def test_hyphens_that_word_writes_as_elements_are_text() -> None:
    body = "<w:r><w:t>a co</w:t><w:noBreakHyphen/><w:t>operative socie</w:t><w:softHyphen/><w:t>ty</w:t></w:r>"
    assert texts(paragraph(body)) == ["a co-operative society"]


def test_the_text_of_a_simple_link_is_translated() -> None:
    link = '<w:fldSimple w:instr=" HYPERLINK &quot;x&quot; "><w:r><w:t>there</w:t></w:r></w:fldSimple>'
    body = f"<!-- a -->{link}<w:r><w:t> it is</w:t></w:r>{link.replace('HYPERLINK', 'REF')}"
    html = '<wbr id="0"><span id="1">there</span> it is<wbr id="2">'
    assert texts(paragraph(body)) == [html]
    assert rewritten(body, html) == body


def test_a_run_with_marks_of_a_field_beside_text_is_divided() -> None:
    separate, behind = '<w:fldChar w:fldCharType="separate"/>', '<w:fldChar w:fldCharType="end"/>'
    before = '<w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK "x"</w:instrText>'
    body = f"<w:r><w:rPr><w:b/></w:rPr><w:t>See </w:t>{before}{separate}<w:t>this</w:t>{behind}<w:t> now</w:t></w:r>"
    html = 'See <span id="0">this</span> now'
    assert texts(paragraph(body)) == [html]
    divided = rewritten(body, html)
    assert divided.count("<w:rPr><w:b/></w:rPr>") == divided.count("<w:r>") == 7
    assert divided.replace("</w:r><w:r><w:rPr><w:b/></w:rPr>", "") == body


def test_a_text_box_in_a_run_with_marks_of_a_field_is_translated() -> None:
    box = "<w:pict><w:txbxContent><w:p><w:r><w:t>inside</w:t></w:r></w:p></w:txbxContent></w:pict>"
    document = paragraph(f'<w:r><w:t>outside</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/>{box}</w:r>')
    written = member(translated(document), "word/document.xml")
    assert ("OUTSIDE" in written, "INSIDE" in written) == (True, True)


def test_a_field_that_goes_on_in_another_paragraph_stays() -> None:
    body = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:t>words</w:t></w:r>'
    assert texts(paragraph(body)) == ['<wbr id="0">words']
    assert rewritten(body * 100, texts(paragraph(body * 100))[0]) == body * 100


def test_text_boxes_are_paragraphs_of_their_own() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>inside</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>"
    document = paragraph(f"<w:r><w:t>outside</w:t></w:r>{box}")
    assert texts(document) == ['outside<wbr id="0">', "inside"]
    written = member(translated(document), "word/document.xml")
    assert ("OUTSIDE" in written, "INSIDE" in written, "pict" in written) == (True, True, True)


def test_characters_that_xml_cannot_hold_are_left_out() -> None:
    assert rewritten("<w:r><w:t>a</w:t></w:r>", "b\x00\x1bc") == "<w:r><w:t>bc</w:t></w:r>"


def test_texts_are_named_by_part_and_paragraph() -> None:
    assert [text.place for text in read_odt(odt()).texts][:2] == [
        "content.xml, paragraph 1",
        "content.xml, paragraph 2",
    ]


@pytest.mark.parametrize("read", [read_docx, read_pptx, read_odt])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK no archive", "^is no ZIP archive, or a damaged one$"),
        (zipped({"readme.txt": "Hello."}), "it has no part with the text"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "^is protected by a password, or of an old version of Office$"),
        (word()[:-500], "is no ZIP archive"),
    ],
)
def test_another_file_is_refused(read, content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(content)


def test_a_file_without_the_part_of_the_text_is_refused() -> None:
    header = f"<w:hdr {W}><w:p><w:r><w:t>a</w:t></w:r></w:p></w:hdr>"
    with pytest.raises(ValueError, match=r"^is no Word document \(.docx\): it has no part with the text$"):
        read_docx(zipped({"word/header1.xml": header}))
    document = f"<w:document {W}><w:body><w:p><w:r><w:t>b</w:t></w:r></w:p></w:body></w:document>"
    assert texts(read_docx(zipped({"word/header1.xml": header, "word/document2.xml": document}))) == ["a", "b"]


def test_an_encrypted_odt_file_is_refused() -> None:
    manifest = '<m:manifest xmlns:m="a"><m:file-entry><m:encryption-data/></m:file-entry></m:manifest>'
    for name in ("content.xml", "encrypted-package"):
        with pytest.raises(ValueError, match=r"^is protected by a password$"):
            read_odt(zipped({name: b"\x8f\x00", "META-INF/manifest.xml": manifest}))


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("<w:document>", "is no XML"),
        ("", "is no XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "must have no document type"),
        ("<a>" * 300 + "</a>" * 300, "is no XML"),
        ("<document/>", "is no part of a Word document .*: its first element is 'document'$"),
        ('<d xmlns="http://purl.oclc.org/ooxml/wordprocessingml/main"/>', "is no part .* not as Strict Open XML"),
    ],
)
def test_xml_that_could_grow_or_is_broken_or_unknown_is_refused(part: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"its member 'word/document.xml' {words}") as raised:
        read_docx(zipped({"word/document.xml": part}))
    assert "\n" not in str(raised.value)


def test_a_large_part_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(safe_xml, "MAX_BYTES", 10)
    with pytest.raises(ValueError, match=r"'content.xml' must have at most 10 bytes of XML"):
        read_odt(odt())
