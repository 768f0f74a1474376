"""What is a placeholder in a text, and what is none."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.terms import placeholders


def found(text: str) -> list[str]:
    return [text[start:stop] for start, stop in placeholders.find(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello {name}, {} {0} {price:.2f} { x }", ["{name}", "{}", "{0}", "{price:.2f}", "{ x }"]),
        ("{{ user.name }} {{{raw}}} {% if a %}", ["{{ user.name }}", "{{{raw}}}", "{% if a %}"]),
        ("${x} #{y} %{z}", ["${x}", "#{y}", "%{z}"]),
        ("%s %1$s %-10.2f %lu %@ %% %n %1 %L2", ["%s", "%1$s", "%-10.2f", "%lu", "%@", "%%", "%n", "%1", "%L2"]),
        ("%(count)d %(user.name)s %PATH%", ["%(count)d", "%(user.name)s", "%PATH%"]),
        ("%dx%d %s_%s %dx%02d %d_%1$s %sx%%", ["%d", "%d", "%s", "%s", "%d", "%02d", "%d", "%1$s", "%s", "%%"]),
        ("%PATH%. %count%.exe %PATH%x", ["%PATH%", "%count%", "%PATH%"]),
        ("20%% off, 5%s and 7%@!", ["%%", "%s", "%@"]),
        ("{n, plural, one {# file} other {# files}}!", ["{n, plural, one {# file} other {# files}}"]),
        ("{a, plural, one {{b, select, x {his {c}} other {#}}} other {#}}.", None),
        ("{when, date, short} {n, number}", ["{when, date, short}", "{n, number}"]),
        ('Press <x/> or <ph id="1"/>', ["<x/>", '<ph id="1"/>']),
        (
            "See https://example.com/a_(b)?x=1#y. (http://x.org/z)",
            ["https://example.com/a_(b)?x=1#y", "http://x.org/z"],
        ),
        ("www.example.com, mailto:a@b.de!", ["www.example.com", "mailto:a@b.de"]),
        ("请访问https://example.com/a查看", ["https://example.com/a"]),
        ("Go to example.com/account, or a-b.example.org/?c=1.", ["example.com/account", "a-b.example.org/?c=1"]),
        ("Mr.Smith/Jones, U.S./EU, i.e./e.g., z.B./d.h., 5.5/10 and/or example.com", []),
        ("Write to john.doe+x@mail.example.org.", ["john.doe+x@mail.example.org"]),
        ("I ❤️ it 👩‍👩‍👧 🇩🇪 1️⃣ 👍🏽👍", ["❤️", "👩‍👩‍👧", "🇩🇪", "1️⃣", "👍🏽👍"]),
        # What looks like one, and is none:
        ("100% of 5 % and 50%discount", []),
        ("the set {a b c}, <b>bold</b>, a < b, (x), [y]", []),
        ("a@b, @home, C#, 12 * 3 # 4", []),
    ],
)
def test_examples(text: str, expected: list[str] | None) -> None:
    assert found(text) == ([text[:-1]] if expected is None else expected)


@given(st.text(st.sampled_from("{}%$#<>/@.,:()a1 \u200d\U0001f600\ufe0fhtps"), max_size=60))
def test_placeholders_stand_apart_and_are_not_blank(text: str) -> None:
    spans = list(placeholders.find(text))
    assert all(text[start:stop].strip() for start, stop in spans)
    assert all(before[1] <= behind[0] for before, behind in itertools.pairwise(spans))


@pytest.mark.parametrize(
    "part", ["{", "{a", "{a, b,", "{a,b,{", "%", "www.", ".", "a@", "a.b@a-", "<a ", "a://(", "{ ", "😀\u200d"]
)
def test_no_text_takes_long(part: str) -> None:
    assert len(found(part * 50_000)) <= 50_000
