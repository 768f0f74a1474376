"""The page in a real browser, on a real server."""

import io
import operator
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import docx
import grpc
import pytest
from playwright.sync_api import Browser, BrowserContext, FilePayload, Page, expect

from bench.server_process import free_ports
from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests import chromium
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.e2e.texts import LONG
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving
from tests.waiting import until

if chromium.PROGRAM is None:
    pytest.skip("no Chromium here: Debian has it as chromium", allow_module_level=True)

ENGLISH, GERMAN = "Good morning. Where is the library?", "Guten Morgen. Wo ist die Bibliothek?"
EVERY_BREAK = """
    window.broken = [];
    document.addEventListener("securitypolicyviolation", (event) => window.broken.push(event.violatedDirective));
"""
expect.set_options(timeout=PATIENCE_S * 1000)


class Tab:
    """One page of the server, and what went wrong in it."""

    def __init__(self, context: BrowserContext, server: ServerProcess) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.add_init_script(EVERY_BREAK)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.source, self.target, self.text, self.translation, self.error, self.again, self.swap, self.more = (
            self.page.locator(f"#{name}")
            for name in ("source", "target", "text", "translation", "error", "again", "swap", "more")
        )

    def open(self, fragment: str = "") -> "Tab":
        self.page.goto(f"http://{self.server.http_address}/{fragment}")
        return self

    def wait_until(self, metric: str, is_so: Callable[[float], bool], **labels: str) -> None:
        """Wait until the value of a metric of the server is so."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not is_so(value := self.server.metric(metric, **labels)):
            assert time.monotonic() < give_up_s, f"{metric} is still {value}"
            self.page.wait_for_timeout(50)

    def unexpected_errors(self) -> list[str]:
        """All but the browser's own lines about answers that are errors."""
        return [error for error in self.errors if not error.startswith("Failed to load resource")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium.running() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(_bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    copy_bundle(BUNDLE, models / "en-de")
    for source in ("de", "fr"):
        copy_pair(models, source, "en")
    arguments = ("--http-address=127.0.0.1:0", f"--models={models}", "--threads=1", "--pivot-language=en")
    with serving(*arguments) as process:
        yield process


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; at the end, nothing has gone wrong in them."""
    tabs: list[Tab] = []

    def make(server: ServerProcess, **options: object) -> Tab:
        tabs.append(Tab(browser.new_context(**({"locale": "en-US"} | options)), server))
        return tabs[-1]

    yield make
    for tab in tabs:
        assert tab.unexpected_errors() == []
        assert tab.page.evaluate("window.broken") == []
        tab.page.context.close()


@pytest.fixture
def tab(server: ServerProcess, visit: Callable[..., Tab]) -> Tab:
    return visit(server)


def test_what_is_typed_is_translated_piece_by_piece_and_can_be_copied(tab: Tab) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.open("#en/de/")
    tab.page.evaluate(
        """() => {
            const output = document.getElementById("translation");
            [window.seen, window.pieces] = [[], []];
            new MutationObserver((records) => {
                window.seen.push(output.textContent);
                for (const { addedNodes } of records) window.pieces.push(...[...addedNodes].map((node) => node.data));
            }).observe(output, { childList: true });
        }"""
    )
    tab.text.fill(ENGLISH)
    expect(tab.more).to_be_enabled()
    expect(tab.translation).to_have_text(GERMAN)
    *pieces, whole = tab.page.evaluate("window.pieces")
    assert "".join(pieces) == whole == GERMAN
    assert [part for part in tab.page.evaluate("window.seen") if not GERMAN.startswith(part)] == []
    tab.text.press_sequentially(" !")
    tab.text.press("Backspace")
    tab.text.press("Backspace")
    expect(tab.more).to_be_enabled()
    expect(tab.page.locator("#count")).to_have_text("35 characters")
    tab.page.get_by_role("button", name="Copy").click()
    expect(tab.page.locator("#note")).to_have_text("Copied")
    assert tab.page.evaluate("navigator.clipboard.readText()") == GERMAN
    tab.page.get_by_role("button", name="Clear").click()
    expect(tab.translation).to_have_text("")
    expect(tab.text).to_be_focused()


def test_a_translation_appears_while_it_is_decoded_and_a_keystroke_ends_that_and_frees_its_slots(tab: Tab) -> None:
    tab.open("#en/de/")
    before = tab.server.metric("requests_total", code="CANCELLED", method="StreamTranslateText")
    tab.text.fill(LONG)
    expect(tab.translation).to_contain_text("Tom")
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)
    tab.wait_until("requests_total", lambda value: value == before + 1, code="CANCELLED", method="StreamTranslateText")
    tab.wait_until("slots_active", operator.not_)
    tab.wait_until("queue_segments", operator.not_)


def test_the_language_is_detected_and_both_are_swapped(tab: Tab) -> None:
    tab.open()
    expect(tab.source).to_have_value("auto")
    expect(tab.source.locator("option")).to_have_text(["Detect language", "English", "French", "German"])
    expect(tab.swap).to_be_disabled()
    tab.target.select_option("German")
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.source.locator("option:checked")).to_have_text("English (detected)")
    tab.swap.click()
    assert (tab.source.input_value(), tab.target.input_value()) == ("de", "en")
    expect(tab.text).to_have_value(GERMAN)
    expect(tab.target.locator("option")).to_have_text(["English"])


def test_the_target_follows_the_language_that_is_detected(tab: Tab) -> None:
    tab.open("#auto/en/")
    expect(tab.target).to_have_value("en")
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.target).to_have_value("de")
    expect(tab.source.locator("option:checked")).to_have_text("English (detected)")
    expect(tab.error).to_be_hidden()
    tab.text.fill("Wo ist der Bahnhof? Ich habe ihn nicht gefunden.")
    expect(tab.target).to_have_value("en")
    expect(tab.source.locator("option:checked")).to_have_text("German (detected)")
    expect(tab.error).to_be_hidden()


def test_over_a_third_language_there_is_a_translation_without_words_to_light_up(tab: Tab) -> None:
    tab.open("#fr/de/")
    expect(tab.target.locator("option")).to_have_text(["English", "German"])
    tab.text.fill("Bonjour.")
    expect(tab.more).to_be_enabled()
    with tab.page.expect_response("**/v1/translate") as answered:
        tab.translation.hover()
    assert answered.value.status == 400
    expect(tab.error).to_be_hidden()


def test_a_language_that_is_not_served_is_an_error_that_names_it(tab: Tab) -> None:
    tab.open("#auto/de/")
    tab.text.fill("Dove si trova la stazione?")
    expect(tab.error).to_contain_text(
        "This looks like Italian. Only English and French can be translated into German here."
    )
    expect(tab.source.locator("option:checked")).to_have_text("Italian (detected)")
    expect(tab.again).to_be_hidden()
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.error).to_be_hidden()


def test_alternatives_are_shown_and_taken(tab: Tab) -> None:
    tab.open("#en/de/The library is closed on Sundays.")
    expect(tab.more).to_be_enabled()
    first = tab.translation.text_content()
    tab.more.click()
    others = tab.page.locator("#alternatives button")
    expect(others).not_to_have_count(0)
    expect(tab.more).to_have_attribute("aria-expanded", "true")
    assert first not in others.all_text_contents()
    chosen = others.first.text_content()
    others.first.click()
    expect(tab.translation).to_have_text(str(chosen))
    assert first in others.all_text_contents()
    tab.more.click()
    expect(tab.page.locator("#alternatives")).to_be_hidden()


def test_a_doubtful_sentence_is_marked_and_said(tab: Tab) -> None:
    tab.open("#en/de/")
    doubts, note = tab.translation.locator("mark"), tab.page.locator("#note")
    tab.text.fill("🙂\nGood morning. Im realy sory for teh late reply. Where is the library?")
    expect(note).to_have_text("Sentence 2 of 3 may be wrong.")
    translation = str(tab.translation.text_content())
    expect(doubts).to_have_count(1)
    doubtful = str(doubts.text_content())
    assert translation.startswith(f"🙂\nGuten Morgen. {doubtful} ")
    expect(doubts).to_have_attribute("title", "This part may be wrong")
    expect(doubts).to_have_accessible_description("This part may be wrong")
    tab.translation.hover()
    expect(doubts.locator("span")).not_to_have_count(0)  # its words
    assert doubts.text_content() == doubtful
    assert tab.translation.text_content() == translation
    tab.translation.focus()
    tab.page.keyboard.press("End")
    expect(tab.translation.locator("span").last).to_be_focused()
    tab.text.fill("Im realy sory for teh late reply.")
    expect(note).to_have_text("This translation may be wrong.")
    expect(doubts).to_have_text(str(tab.translation.text_content()))
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.more).to_be_enabled()
    expect(doubts).to_have_count(0)
    expect(note).to_have_text("")


def test_the_page_says_what_a_model_is_for(tab: Tab) -> None:
    tab.open("#en/de/")
    purpose = tab.page.locator("#purpose")
    expect(purpose).to_have_text(
        "This model is for everyday sentences, interfaces and software documentation; "
        "news and literature are often wrong."
    )


def test_the_source_of_a_word_lights_up_by_mouse_and_by_keyboard(tab: Tab) -> None:
    tab.open("#en/de/")
    tab.text.fill("🙂 " + ENGLISH)  # two units of UTF-16, one code point
    expect(tab.more).to_be_enabled()
    translation = tab.translation.text_content()
    before = tab.server.metric("requests_total", method="TranslateText")
    tab.translation.hover()
    word = tab.translation.locator("span", has_text="Bibliothek")
    word.hover()
    lit = tab.page.locator("#marks mark")
    expect(lit).to_have_text(["library"])
    assert tab.translation.text_content() == translation
    assert tab.page.locator("#marks").text_content() == tab.text.input_value()
    tab.page.mouse.move(0, 0)
    expect(lit).to_have_count(0)
    tab.translation.focus()
    tab.page.keyboard.press("End")
    expect(word).to_be_focused()
    expect(lit).to_have_text(["library"])
    tab.page.keyboard.press("ArrowLeft")
    expect(word).not_to_be_focused()
    tab.page.keyboard.press("ArrowRight")
    expect(word).to_be_focused()
    assert tab.server.metric("requests_total", method="TranslateText") == before + 1  # asked for once


def test_text_files_are_opened_and_dropped(tab: Tab, tmp_path: Path) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    field = tab.page.locator("#file")
    for name, content, wrong in (
        ("picture.png", b"\x89PNG", "picture.png cannot be opened here. Files can be .srt, .vtt, .docx, "),
        ("latin.txt", "naïve".encode("latin-1"), "latin.txt is not text in UTF-8."),
        ("long.docx", b"a" * 8_388_608, "long.docx is too large: a file may have 8.3 MB."),
    ):
        (tmp_path / name).write_bytes(content)
        field.set_input_files(tmp_path / name)
        expect(tab.error).to_contain_text(wrong)
        expect(tab.again).to_be_hidden()
    tab.text.fill("é" * 550_001)
    expect(tab.error).to_contain_text("The text is too large: it may have 1.1 MB. A file may have 8.3 MB: open one.")
    (tmp_path / "good.txt").write_text(ENGLISH, encoding="utf-8-sig")
    field.set_input_files(tmp_path / "good.txt")
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.error).to_be_hidden()
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
    tab.page.locator("#document-close").click()
    expect(tab.page.locator("#document")).to_be_hidden()


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


def test_a_text_that_looks_like_another_language_can_be_translated_from_that(tab: Tab) -> None:
    tab.open("#en/de/")
    guess, take = tab.page.locator("#guess"), tab.page.locator("#guess-take")
    tab.text.fill("Où est la bibliothèque municipale ?")
    expect(guess).to_contain_text("This looks like French.")
    expect(take).to_have_text("Translate from French")
    take.click()
    expect(guess).to_be_hidden()
    assert (tab.source.input_value(), tab.target.input_value()) == ("fr", "de")
    expect(tab.more).to_be_enabled()
    tab.source.select_option("English")
    tab.text.fill("Dove si trova la biblioteca della città?")
    expect(guess).to_contain_text(
        "This looks like Italian. Only English and French can be translated into German here."
    )
    expect(take).to_be_hidden()
    tab.text.fill(ENGLISH)
    expect(guess).to_be_hidden()


def test_the_language_of_a_text_is_looked_at_rarely_and_never_of_a_short_one(tab: Tab) -> None:
    tab.open("#en/de/")
    before = tab.server.metric("requests_total", code="OK", method="DetectLanguage")
    for text in ("Bonjour.", ENGLISH, ENGLISH + " It is"):
        tab.text.fill(text)
        expect(tab.more).to_be_enabled()
    tab.wait_until("requests_total", lambda value: value == before + 1, code="OK", method="DetectLanguage")
    expect(tab.page.locator("#guess")).to_be_hidden()


def test_the_address_keeps_languages_and_text(tab: Tab) -> None:
    tab.open("#en/de/Good%20morning.")
    expect(tab.translation).to_have_text("Guten Morgen.")
    tab.text.fill("50 % / 3")
    tab.page.wait_for_url("**/#en/de/50%20%25%20%2F%203")
    tab.page.reload()
    expect(tab.text).to_have_value("50 % / 3")
    tab.page.evaluate("location.hash = '#auto/en/%E4%F6'")  # no UTF-8
    expect(tab.source).to_have_value("auto")
    expect(tab.text).to_have_value("50 % / 3")


def test_html_in_a_text_stays_text(tab: Tab) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    tab.open("#en/de/")
    tab.text.fill(hostile)
    expect(tab.more).to_be_enabled()
    tab.translation.hover()
    tab.more.click()
    expect(tab.page.locator("#alternatives li")).not_to_have_count(0)
    assert tab.page.locator("main img, main script").count() == 0
    assert tab.page.locator("#marks").text_content() == hostile


def test_a_server_that_is_gone_is_asked_again(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    tab.page.context.set_offline(True)
    tab.text.fill(ENGLISH)
    expect(tab.error).to_contain_text("The server does not answer. This page goes on by itself once it does.")
    tab.page.context.set_offline(False)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.error).to_be_hidden()


def test_the_page_comes_back_with_the_server(serve: Callable[..., ServerProcess], visit: Callable[..., Tab]) -> None:
    server = serve(f"--http-address=127.0.0.1:{free_ports(1)[0]}")
    tab = visit(server).open("#en/de/Good%20morning.")
    expect(tab.translation).to_have_text("Guten Morgen.")
    server.close()
    tab.text.fill(ENGLISH)
    expect(tab.error).to_contain_text("The server does not answer.")
    tab.text.press("End")
    tab.text.press("Space")
    expect(tab.error).to_be_visible()
    expect(tab.translation).to_have_text("Guten Morgen.")
    expect(tab.translation).to_have_class("stale")
    serve(f"--http-address={server.http_address}")
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.error).to_be_hidden()
    expect(tab.more).to_be_enabled()


@contextmanager
def busy(server: ServerProcess, *names: str) -> Iterator[None]:
    """Have the server refuse what a browser on this machine asks for, for some seconds a name."""
    texts = [LONG.replace("Tom", name) for name in names]
    with grpc.insecure_channel(server.address) as channel:
        call = TranslationStub(channel).TranslateText.future(pb.TranslateTextRequest(contents=texts, model="en-de"))
        try:
            until(lambda: server.metric("estimated_delay_seconds") > 0.05)
            yield
            assert not call.done(), "the text was too short to prove anything"
        finally:
            call.cancel()


def test_a_busy_server_is_asked_again_in_silence_and_at_last_the_visitor_is_told(
    serve: Callable[..., ServerProcess], visit: Callable[..., Tab]
) -> None:
    server = serve("--http-address=127.0.0.1:0", "--threads=1", "--slots=4", "--max-delay-s=0.01")
    tab = visit(server).open("#en/de/")
    expect(tab.target).to_have_value("de")
    tab.page.evaluate(
        """() => {
            const error = document.getElementById("error");
            window.told = 0;
            new MutationObserver(() => (window.told += !error.hidden)).observe(error, { attributes: true });
        }"""
    )
    for use, outcome in (
        (lambda: tab.text.fill(ENGLISH), tab.page.locator("#translation", has_text=GERMAN)),
        (tab.more.click, tab.page.locator("#alternatives button").first),
    ):
        before = server.metric("rejected_total", reason="OVERLOADED")
        with busy(server, "Tom"):
            use()
            tab.wait_until("rejected_total", lambda value, enough=before + 2: value >= enough, reason="OVERLOADED")
        expect(outcome).to_be_visible()
        expect(tab.translation).to_have_attribute("aria-busy", "false")
    assert tab.page.evaluate("window.told") == 0
    with busy(server, "Anna", "Maria", "Peter", "Paul"):  # for longer than the page asks again
        tab.text.fill("Good morning.")
        expect(tab.error).to_contain_text("The server is busy. Try again in")
        expect(tab.again).to_be_visible()


def test_a_key_is_asked_for_and_the_error_says_when_to_try_again(
    serve: Callable[..., ServerProcess], visit: Callable[..., Tab], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["api-key", "alice", "--requests-per-s=0.01", "--burst=2"]) == 0
    line, told = capsys.readouterr()
    key, file = told.split()[-1], tmp_path / "keys.toml"
    file.write_text(line)
    server = serve("--http-address=127.0.0.1:0", f"--api-keys={file}")
    tab = visit(server).open("#en/de/" + ENGLISH)
    field = tab.page.get_by_label("API key")
    expect(field).to_be_focused()
    expect(tab.error).to_be_hidden()
    for given in ("wrong", key):
        field.fill(given)
        field.press("Enter")
        expect(tab.error if given == "wrong" else tab.page.locator("#copy:enabled")).to_be_visible()
    expect(tab.translation).to_have_text(GERMAN)
    expect(field).to_be_hidden()
    assert tab.page.evaluate("[Object.values(sessionStorage), localStorage.length, document.cookie]") == [[key], 0, ""]
    tab.text.fill("Good morning.")
    expect(tab.error).to_contain_text(re.compile(r"Too many translations in a short time\. Try again in \d+ seconds\."))
    expect(tab.again).to_be_visible()
    expect(tab.translation).to_have_text("")


def test_a_phone_in_the_dark_scrolls_only_up_and_down(server: ServerProcess, visit: Callable[..., Tab]) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        tab = visit(server, viewport={"width": 320, "height": 640}, color_scheme=scheme).open("#en/de/" + ENGLISH)
        expect(tab.translation).to_have_text(GERMAN)
        tab.text.fill("Donaudampfschifffahrtsgesellschaft" * 9)
        expect(tab.more).to_be_enabled()
        tab.more.click()
        expect(tab.page.locator("#alternatives")).to_be_visible()
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 320
        tab.page.goto(f"http://{server.http_address}/docs")
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 320
        grounds.add(tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_it_is_used_by_keyboard_and_read_aloud(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.text).to_be_focused()
    tab.text.fill(ENGLISH)
    tab.page.keyboard.press("Control+Enter")
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.translation).to_have_attribute("aria-busy", "false")
    assert (tab.text.get_attribute("lang"), tab.translation.get_attribute("lang")) == ("en", "de")
    tab.source.focus()
    order = []
    for _ in range(8):
        order.append(tab.page.evaluate("document.activeElement.id"))
        tab.page.keyboard.press("Tab")
    assert order == ["source", "swap", "target", "text", "open", "clear", "translation", "more"]
    read = tab.page.locator("main").aria_snapshot()
    for line in ('combobox "From"', 'button "Swap languages"', 'combobox "Into"', 'textbox "Text to translate"'):
        assert line in read
    assert f'status "Translation": {GERMAN}' in read


def test_a_phone_is_told_of_no_keys_and_shows_the_source_of_a_word_that_is_tapped(
    server: ServerProcess, visit: Callable[..., Tab]
) -> None:
    tab = visit(server, viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True).open(
        "#en/de/" + ENGLISH
    )
    expect(tab.more).to_be_enabled()
    footer = tab.page.locator("footer")
    expect(footer).to_contain_text("Tap a translated word to highlight its source.", use_inner_text=True)
    expect(footer).not_to_contain_text(re.compile("Ctrl|Tab and|drop"), use_inner_text=True)
    tab.translation.tap()
    tab.translation.locator("span", has_text="Bibliothek").tap()
    expect(tab.page.locator("#marks mark")).to_have_text(["library"])


def test_a_window_is_filled_and_long_texts_scroll_in_their_boxes(
    server: ServerProcess, visit: Callable[..., Tab]
) -> None:
    tab = visit(server, viewport={"width": 1280, "height": 800}).open("#en/de/" + ENGLISH)
    expect(tab.more).to_be_enabled()
    footer = tab.page.locator("footer").bounding_box()
    assert footer is not None
    assert 760 < footer["y"] + footer["height"] <= 800
    tab.text.fill("Good morning.\n" * 200)
    expect(tab.more).to_be_enabled()
    assert tab.page.evaluate("document.documentElement.scrollHeight") == 800


def test_the_guide_for_programs_has_examples_of_this_server(tab: Tab) -> None:
    tab.open()
    tab.page.get_by_role("link", name="how to call this server").click()
    example = tab.page.locator("pre").first
    expect(example).to_contain_text(f"curl http://{tab.server.http_address}/v1/translate ")
    expect(example).to_contain_text('"sourceLanguageCode": "de", "targetLanguageCode": "en"')
