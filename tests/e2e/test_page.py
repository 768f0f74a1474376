"""The page in a real browser, on a real server."""

import operator
import re
from collections.abc import Callable

from playwright.sync_api import Route, expect

from tests.e2e.page_tabs import ENGLISH, GERMAN, Tab
from tests.e2e.texts import LONG
from tests.server_process import ServerProcess
from tests.waiting import until


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
    tab.text.fill(LONG)
    expect(tab.translation).to_contain_text("Tom")
    tab.page.get_by_role("button", name="Clear").click()
    expect(tab.translation).to_have_text("")
    expect(tab.translation).to_have_attribute("aria-busy", "false")


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


def test_texts_and_languages_are_swapped_together_or_not_at_all(tab: Tab) -> None:
    tab.open("#en/de/" + ENGLISH)
    expect(tab.more).to_be_enabled()
    note = tab.swap.evaluate("(button) => { button.click(); button.click(); return window.note.textContent; }")
    assert note == "Wait for the translation, then swap."
    expect(tab.more).to_be_enabled()
    assert [each.input_value() for each in (tab.source, tab.target, tab.text)] == ["de", "en", GERMAN]
    tab.text.evaluate("(field) => { field.value += '!'; field.dispatchEvent(new Event('input')); swap.click(); }")
    expect(tab.more).to_be_enabled()
    assert [each.input_value() for each in (tab.source, tab.target, tab.text)] == ["de", "en", GERMAN + "!"]


def test_the_language_of_a_short_text_is_left_to_the_visitor(
    default_models: ServerProcess, visit: Callable[..., Tab]
) -> None:
    tab = visit(default_models).open()
    expect(tab.target).to_have_value("en")
    note = tab.page.locator("#note")
    for text in ("Stop", "Good"):  # the first is not detected, the second as a language that is not served
        tab.text.fill(text)
        expect(note).to_have_text("The language of such a short text is not clear: choose it.")
        expect(tab.translation).to_have_attribute("aria-busy", "false")
        expect(tab.source.locator("option:checked")).to_have_text("Detect language")
        expect(tab.error).to_be_hidden()
        tab.text.fill("12345")
        expect(note).to_have_text("")
        expect(tab.translation).to_have_text("12345")
    tab.text.fill(ENGLISH)
    expect(tab.translation).to_have_text(GERMAN)


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


def test_the_note_belongs_to_the_translation_that_is_shown(tab: Tab) -> None:
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.open("#en/de/Good morning. Im realy sory for teh late reply.")
    note, others = tab.page.locator("#note"), tab.page.locator("#alternatives button")
    expect(note).to_have_text("Sentence 2 of 2 may be wrong.")
    first = str(tab.translation.text_content())
    tab.page.get_by_role("button", name="Copy").click()
    expect(note).to_have_text("Copied")
    expect(note).to_have_text("Sentence 2 of 2 may be wrong.")
    tab.more.click()
    tab.page.get_by_role("button", name="Copy").click()
    expect(note).to_have_text("Copied")
    others.first.click()
    expect(note).to_have_text("")
    tab.translation.hover()
    others.get_by_text(first, exact=True).click()
    expect(note).to_have_text("Sentence 2 of 2 may be wrong.")
    expect(tab.translation.locator("mark")).to_have_count(1)
    tab.translation.hover()
    expect(tab.translation.locator("span")).not_to_have_count(0)  # its words


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


def test_a_text_that_is_too_long_for_the_address_is_kept_in_the_tab(tab: Tab) -> None:
    tab.open("#en/de/")
    long = "Good morning.\n" * 150
    tab.text.fill(long)
    until(lambda: tab.page.evaluate("sessionStorage.length"))
    tab.page.goto("about:blank")
    tab.open("#en/de/")
    expect(tab.text).to_have_value(long)
    tab.text.fill("Good morning.")
    expect(tab.translation).to_have_text("Guten Morgen.")
    assert tab.page.evaluate("sessionStorage.length") == 0


def test_what_is_typed_before_the_languages_are_there_stays(tab: Tab) -> None:
    held: list[Route] = []
    tab.page.route("**/v1/models*", lambda route: held.append(route))
    with tab.page.expect_request("**/v1/models*"):
        tab.open("#en/de/Good%20morning.")
    expect(tab.text).to_have_value("Good morning.")
    tab.text.fill(ENGLISH)
    held[0].continue_()
    expect(tab.translation).to_have_text(GERMAN)
    expect(tab.text).to_have_value(ENGLISH)


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
    page_server: ServerProcess, visit: Callable[..., Tab]
) -> None:
    tab = visit(page_server, viewport={"width": 390, "height": 780}, has_touch=True, is_mobile=True).open(
        "#en/de/" + ENGLISH
    )
    expect(tab.more).to_be_enabled()
    footer = tab.page.locator("footer")
    expect(footer).to_contain_text("Tap a translated word to highlight its source.", use_inner_text=True)
    expect(footer).not_to_contain_text(re.compile("Ctrl|Tab and|drop"), use_inner_text=True)
    tab.translation.tap()
    tab.translation.locator("span", has_text="Bibliothek").tap()
    expect(tab.page.locator("#marks mark")).to_have_text(["library"])


def test_the_guide_for_programs_has_examples_of_this_server(tab: Tab) -> None:
    tab.open()
    tab.page.get_by_role("link", name="how to call this server").click()
    example = tab.page.locator("pre").first
    expect(example).to_contain_text(f"curl http://{tab.server.http_address}/v1/translate ")
    expect(example).to_contain_text('"sourceLanguageCode": "en", "targetLanguageCode": "de"')
