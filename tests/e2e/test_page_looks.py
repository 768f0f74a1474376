"""How the page looks: on screens of all sizes, on paper, and where colors are chosen by the system."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.e2e.page_tabs import ENGLISH, GERMAN, Tab
from tests.server_process import ServerProcess


def test_a_phone_in_the_dark_scrolls_only_up_and_down(page_server: ServerProcess, visit: Callable[..., Tab]) -> None:
    grounds = set()
    for scheme in ("light", "dark"):
        tab = visit(page_server, viewport={"width": 320, "height": 640}, color_scheme=scheme).open("#en/de/" + ENGLISH)
        expect(tab.translation).to_have_text(GERMAN)
        tab.text.fill("Donaudampfschifffahrtsgesellschaft" * 9)
        expect(tab.more).to_be_enabled()
        tab.more.click()
        expect(tab.page.locator("#alternatives")).to_be_visible()
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 320
        tab.page.goto(f"http://{page_server.http_address}/docs")
        assert tab.page.evaluate("document.documentElement.scrollWidth") == 320
        grounds.add(tab.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_a_window_is_filled_and_long_texts_scroll_in_their_boxes(
    page_server: ServerProcess, visit: Callable[..., Tab]
) -> None:
    tab = visit(page_server, viewport={"width": 1280, "height": 800}).open("#en/de/" + ENGLISH)
    expect(tab.more).to_be_enabled()
    footer = tab.page.locator("footer").bounding_box()
    assert footer is not None
    assert 760 < footer["y"] + footer["height"] <= 800
    tab.text.fill("Good morning.\n" * 200)
    expect(tab.more).to_be_enabled()
    assert tab.page.evaluate("document.documentElement.scrollHeight") == 800


def test_many_doubts_are_counted_and_cover_nothing(page_server: ServerProcess, visit: Callable[..., Tab]) -> None:
    for width, height in ((760, 620), (360, 740)):
        tab = visit(page_server, viewport={"width": width, "height": height}).open("#en/de/")
        tab.text.fill("Im realy sory. Wheer r yu gon? Teh dok is brokn n sad. Ths wil nt wrk at al.\n" * 4)
        note, bar = tab.page.locator("#note"), tab.page.locator(".bar", has=tab.more)
        expect(note).to_have_text(re.compile(r"^\d+ of 16 sentences may be wrong: they are underlined\.$"))
        tab.more.click()
        expect(tab.page.locator("#alternatives")).to_be_visible()
        words, around = note.bounding_box(), bar.bounding_box()
        assert words is not None
        assert around is not None
        assert around["y"] <= words["y"]
        assert words["y"] + words["height"] <= around["y"] + around["height"]


def test_the_word_that_has_the_focus_is_seen_in_all_colors(
    page_server: ServerProcess, visit: Callable[..., Tab]
) -> None:
    for colors in ("none", "active"):
        tab = visit(page_server, forced_colors=colors).open("#en/de/" + ENGLISH)
        expect(tab.more).to_be_enabled()
        tab.translation.focus()
        expect(tab.translation.locator("span")).not_to_have_count(0)
        tab.page.keyboard.press("End")
        expect(tab.translation.locator("span").last).to_be_focused()
        expect(tab.translation.locator("span").last).to_have_css("outline-style", "solid")
        lit = tab.page.locator("#marks mark")
        expect(lit).to_have_css("outline-style", "solid" if colors == "active" else "none")


def test_long_texts_are_printed_whole(page_server: ServerProcess, visit: Callable[..., Tab]) -> None:
    tab = visit(page_server, viewport={"width": 1280, "height": 800}).open("#en/de/")
    tab.text.fill("Good morning.\n" * 100)
    expect(tab.more).to_be_enabled()
    tab.page.emulate_media(media="print")
    original = tab.page.locator("#marks")
    expect(original).not_to_have_css("color", "rgba(0, 0, 0, 0)")
    printed = tab.page.evaluate("document.documentElement.scrollHeight")
    for part in (original, tab.translation):
        expect(part).to_be_visible()
        box = part.bounding_box()
        assert box is not None
        assert 100 * 20 < box["height"] < box["y"] + box["height"] < printed
        assert part.evaluate("(part) => part.parentElement.clientHeight") > box["height"] - 1
