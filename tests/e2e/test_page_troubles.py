"""What the page says and does when a server is away, busy or asks for a key."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from playwright.sync_api import expect

from bench.server_process import free_ports
from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.page_tabs import ENGLISH, GERMAN, Tab
from tests.e2e.texts import LONG
from tests.server_process import ServerProcess
from tests.waiting import until


def test_a_server_that_is_gone_is_asked_again(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    tab.page.context.set_offline(True)
    tab.text.fill(ENGLISH)
    expect(tab.error).to_contain_text("The server does not answer. This page tries again by itself.")
    tab.again.focus()
    tab.page.context.set_offline(False)
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.error).to_be_hidden()
    expect(tab.text).to_be_focused()
    for part in (tab.more, tab.translation.locator("span").first):
        tab.translation.focus()
        part.focus()
        tab.page.keyboard.press("Control+Enter")
        expect(tab.text).to_be_focused()
        expect(tab.more).to_be_enabled()


def test_a_server_that_refuses_again_and_again_is_named_once(tab: Tab) -> None:
    tab.open("#en/de/")
    expect(tab.target).to_have_value("de")
    tab.page.evaluate(
        """() => {
            window.told = [];
            const look = () => window.told.push(document.getElementById("error-text").textContent);
            const changes = { attributes: true, childList: true, subtree: true };
            new MutationObserver(look).observe(document.getElementById("error"), changes);
        }"""
    )
    refusal = {"error": {"code": 503, "details": [{"reason": "MODEL_UNAVAILABLE"}]}}
    tab.page.route("**/v1/translate:stream", lambda route: route.fulfill(status=503, json=refusal))
    with tab.page.expect_response("**/v1/translate:stream"):
        tab.text.fill(ENGLISH)
    words = "The server cannot translate between these languages at the moment. This page tries again by itself."
    expect(tab.page.locator("#error-text")).to_have_text(words)
    told = tab.page.evaluate("window.told")
    for _ in range(2):
        with tab.page.expect_response("**/health"), tab.page.expect_response("**/v1/translate:stream"):
            pass
    expect(tab.error).to_be_visible()
    assert tab.page.evaluate("window.told") == told
    tab.page.unroute("**/v1/translate:stream")
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
    tab.page.evaluate("sessionStorage.setItem('dragoman-api-key', 'old')")
    tab.text.fill(ENGLISH)
    expect(tab.error).to_contain_text("The server does not accept this key.")
    expect(field).to_be_visible()
    expect(tab.text).to_be_focused()
