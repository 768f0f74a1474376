"""Small documents, made by the libraries of their formats or by hand."""

import io
import zipfile

import docx
import pptx

_NAMESPACES = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
)
_NOTE = "<text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note>"
_LINK = '<text:a xlink:href="http://example.com/">link</text:a>.'
ODT_CONTENT = f"""<?xml version="1.0" encoding="UTF-8"?>
<office:document-content {_NAMESPACES}><office:body><office:text>
<text:tracked-changes><text:deletion><text:p>deleted</text:p></text:deletion></text:tracked-changes>
<text:h text:style-name="H1" text:outline-level="1">A title</text:h>
<text:p>one <text:span text:style-name="B">two</text:span> three{_NOTE} {_LINK}</text:p>
<text:p>four<text:s text:c="2"/>five<text:line-break/>six</text:p>
<table:table><table:table-cell><text:p>a cell</text:p></table:table-cell></table:table>
<text:p>12</text:p></office:text></office:body></office:document-content>"""


def zipped(members: dict[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return stream.getvalue()


def odt(content: str = ODT_CONTENT) -> bytes:
    manifest = '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    mimetype = "application/vnd.oasis.opendocument.text"
    return zipped({"mimetype": mimetype, "content.xml": content, "META-INF/manifest.xml": manifest})


def word() -> bytes:
    """A heading, formats in a paragraph, a table, a header."""
    document = docx.Document()
    document.add_heading("A title", level=1)
    paragraph = document.add_paragraph("Where did you ")
    paragraph.add_run("learn").bold = True
    paragraph.add_run(" to ")
    paragraph.add_run("cook?")  # of the format of the run before
    table = document.add_table(rows=1, cols=2)
    table.cell(0, 0).text = "a cell"
    table.cell(0, 1).text = "12"
    document.sections[0].header.paragraphs[0].text = "a header"
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def slides() -> bytes:
    """A slide with a title and formats, and a note."""
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "A title"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    for text, bold in (("one ", False), ("two", True), (" three", False)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, bold
    slide.notes_slide.notes_text_frame.text = "a note"
    stream = io.BytesIO()
    presentation.save(stream)
    return stream.getvalue()
