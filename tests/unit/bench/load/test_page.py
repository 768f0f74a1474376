import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bench.load.command import main
from dragoman import errors

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Every element that is opened is closed, and what it may point to."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.ids: set[str] = set()
        self.text = ""
        self.source = html
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                self.references.append(value or "")
            if name == "id":
                self.ids.add(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data.strip("\n")


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.txt"
    path.write_text("One two three.\nFour <b>.\n")
    return str(path)


def page_of(server: Any, data: str, tmp_path: Path, *arguments: str) -> tuple[Page, dict[str, Any]]:
    html, report = tmp_path / "page.html", tmp_path / "report.json"
    main(["--address", server.address, "--data", data, *arguments, "--html", str(html), "--json", str(report)])
    return checked(html.read_text()), json.loads(report.read_text())


def checked(html: str) -> Page:
    page = Page(html)
    assert not page.open
    # Nothing is fetched: a reference is to a part of the page itself.
    assert {reference[:1] for reference in page.references} <= {"#"}
    assert {reference[1:] for reference in page.references} <= page.ids
    return page


def test_a_page_of_one_rate_shows_what_was_measured(server: Any, data: str, tmp_path: Path) -> None:
    def refuse_every_third(number: int) -> None:
        if number % 3 == 0:
            raise errors.QueueFullError("<script>full</script>")

    server.on_request = refuse_every_third
    load = ("--rate", "100", "--duration", "0.5", "--stream", "--bulk-share", "0.5")
    page, report = page_of(server, data, tmp_path, *load, "--slo", "error_rate=0.1", "--slo", "p95_ms=60000")
    assert "Requests over time" in page.text
    assert "Open loop, 100 requests/s" in page.text
    assert "1 of 2 targets missed" in page.text
    assert "<script>full</script>" in page.text
    assert "<script" not in page.source
    assert f"answered, {report['rejected']} rejected" in page.text
    assert "interactive" in page.text
    assert "first text p95" in page.text


def test_a_page_of_a_closed_loop_without_errors(server: Any, data: str, tmp_path: Path) -> None:
    page, _ = page_of(server, data, tmp_path, "--concurrency", "2", "--requests", "10")
    assert "Closed loop, 2 at once" in page.text
    assert "from the result cacheunknown, only --metrics-address tells" in page.text
    assert "requests10 answered" in page.text


def test_a_page_of_a_ramp_shows_its_steps(server: Any, data: str, tmp_path: Path) -> None:
    def refuse_from_the_hundredth_on(number: int) -> None:
        if number >= 100:
            raise errors.OverloadedError("too much")

    server.on_request = refuse_from_the_hundredth_on
    page, report = page_of(server, data, tmp_path, "--ramp", "100", "--p95-ms", "60000", "--duration", "0.4")
    assert "Ramp to p95 ≤ 60000 ms" in page.text
    assert len(report["steps"]) >= 2
    assert all(f"{step['rate']:.1f}" in page.text for step in report["steps"])


def test_a_page_without_any_answer(server: Any, data: str, tmp_path: Path) -> None:
    def refuse(number: int) -> None:
        raise errors.DrainingError("bye")

    server.on_request = refuse
    page, _ = page_of(server, data, tmp_path, "--concurrency", "1", "--requests", "2")
    assert "UNAVAILABLE DRAINING" in page.text
