"""Files in the page: plain text, and documents."""

import io
import operator
import re
from pathlib import Path

import docx
from playwright.sync_api import FilePayload, expect

from tests.e2e.page_tabs import ENGLISH, GERMAN, Tab
from tests.e2e.texts import LONG


def test_text_files_are_opened_and_dropped(tab: Tab, tmp_path: Path) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    field = tab.page.locator("#file")
    for name, content, wrong in (
        ("picture.png", b"\x89PNG", "picture.png cannot be opened here. Files can be .srt, .vtt, .docx, "),
        (
            "latin.txt",
            "naïve".encode("latin-1"),
            "latin.txt cannot be read as text. Save it as UTF-8 and open it again.",
        ),
        ("empty.txt", b"\n", "empty.txt is empty."),
        ("long.docx", b"a" * 8_388_608, "long.docx is too large: a file may have 8.3 MB."),
    ):
        (tmp_path / name).write_bytes(content)
        field.set_input_files(tmp_path / name)
        expect(tab.error).to_contain_text(wrong)
        expect(tab.again).to_be_hidden()
    tab.text.fill("é" * 550_001)
    expect(tab.error).to_contain_text("The text is too large: it may have 1.1 MB. A file may have 8.3 MB: open one.")
    for encoding, text, translation in (
        ("utf-8-sig", ENGLISH, GERMAN),
        ("utf-16", "Good evening.", "Guten Abend."),
    ):
        (tmp_path / "good.txt").write_bytes(text.encode(encoding))
        field.set_input_files(tmp_path / "good.txt")
        expect(tab.translation).to_have_text(translation)
        expect(tab.error).to_be_hidden()
    (tmp_path / "none.txt").write_bytes(b"")
    field.set_input_files(tmp_path / "none.txt")
    expect(tab.error).to_contain_text("none.txt is empty.")
    expect(tab.text).to_have_value("Good evening.")
    dropped = tab.page.evaluate_handle(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["Good morning."], "dropped.txt"));
            return data;
        }"""
    )
    tab.page.locator("body").dispatch_event("dragover", {"dataTransfer": dropped})
    expect(tab.page.locator("#source-card")).to_have_class(re.compile("dropping"))
    tab.page.locator("body").dispatch_event("drop", {"dataTransfer": dropped})
    expect(tab.translation).to_have_text("Guten Morgen.")
    expect(tab.page.locator("#source-card")).not_to_have_class(re.compile("dropping"))
    dropped.evaluate("(data) => data.items.add(new File(['Good evening.'], 'second.txt'))")
    tab.page.locator("body").dispatch_event("drop", {"dataTransfer": dropped})
    expect(tab.error).to_have_text(re.compile(r"^\s*Drop one file at a time\."))
    expect(tab.text).to_have_value("Good morning.")


def letter(text: str) -> FilePayload:
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(file)
    return {"name": "my letter.docx", "mimeType": "application/octet-stream", "buffer": file.getvalue()}


def paragraphs(file: Path) -> list[str]:
    return [paragraph.text for paragraph in docx.Document(str(file)).paragraphs]


def test_a_document_is_translated_and_saved_and_once_more_into_another_language(tab: Tab, tmp_path: Path) -> None:
    tab.open("#auto/de/")
    expect(tab.target).to_have_value("de")
    tab.page.locator("#file").set_input_files(letter("Where is the library?"))
    note, save = tab.page.locator("#document-note"), tab.page.locator("#document-save")
    expect(note).to_have_text("Translated into German")
    for _ in range(2):  # it is kept as long as the page
        with tab.page.expect_download() as download:
            save.click()
        assert download.value.suggested_filename == "my letter.de.docx"
        download.value.save_as(tmp_path / "saved.docx")
        assert paragraphs(tmp_path / "saved.docx") == ["Wo ist die Bibliothek?"]
    tab.source.select_option("French")
    tab.target.select_option("English")
    expect(note).to_have_text("Translated into English")
    tab.page.locator("#document-close").press("Enter")
    expect(tab.page.locator("#document")).to_be_hidden()
    expect(tab.page.locator("#open")).to_be_focused()


def test_a_document_that_cannot_be_translated_is_an_error_in_words(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    field, close = tab.page.locator("#file"), tab.page.locator("#document-close")
    field.set_input_files({"name": "broken.docx", "mimeType": "", "buffer": b"PK"})
    expect(tab.error).to_contain_text("broken.docx cannot be read. It may be damaged, or not be what its name says.")
    field.set_input_files({"name": "lines.srt", "mimeType": "", "buffer": b"\n" * 500_001})
    expect(tab.error).to_contain_text("lines.srt is too large, or a part of it is. Try less of it.")
    expect(close).to_have_text("Close")
    tab.source.select_option("Detect language")
    field.set_input_files(letter("Dove si trova la biblioteca della città?"))
    expect(tab.error).to_contain_text("This looks like Italian. Only English and French can be translated into German")
    tab.page.context.set_offline(True)
    field.set_input_files(letter("Good morning."))
    expect(tab.error).to_contain_text("The server does not answer.")
    tab.page.context.set_offline(False)
    tab.again.click()
    expect(tab.page.locator("#document-save")).to_be_visible()
    expect(tab.error).to_be_hidden()


def test_a_document_that_is_closed_is_translated_no_further(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    before = tab.server.metric("requests_total", code="CANCELLED", method="BatchTranslateText")
    tab.page.locator("#file").set_input_files({"name": "a.md", "mimeType": "", "buffer": f"{LONG}\n\n".encode() * 2})
    expect(tab.page.locator("#document-note")).to_have_text("Translating")
    tab.wait_until("slots_active", bool)
    tab.page.get_by_role("button", name="Cancel").click()
    expect(tab.page.locator("#document")).to_be_hidden()
    tab.wait_until("requests_total", lambda value: value == before + 1, code="CANCELLED", method="BatchTranslateText")
    tab.wait_until("slots_active", operator.not_)
    expect(tab.error).to_be_hidden()
