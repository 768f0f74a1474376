"""How terms get into a translation, and that what is missing is named."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.glossary import GlossaryEntry
from plugins.terms.finding import Index, missing
from plugins.terms.placeholders import find
from plugins.terms.plan import MOST_FORCED, TermPlan, TermPlanner
from plugins.terms.terms import Terms

STAND_INS = ("tom", "bahnhof", "station")


def planner(
    tokenizer, *entries: GlossaryEntry, prefix: str = "", forces: bool = True, placeholders: bool = False
) -> TermPlanner:
    terms = Terms([Index(entries)], find if placeholders else None)
    return TermPlanner(terms, STAND_INS, tokenizer, prefix, forces=forces)


def planned(tokenizer, text: str, *entries: GlossaryEntry, **options) -> TermPlan:
    plan = planner(tokenizer, *entries, **options).plan(text)
    assert plan is not None
    return plan


def forced(tokenizer, plan: TermPlan) -> list[list[str]]:
    assert plan.constraints is not None
    return [[tokenizer.decode(form) for form in term] for term in plan.constraints.terms]


def test_a_text_without_terms_has_no_plan(tokenizer) -> None:
    assert planner(tokenizer, GlossaryEntry("good")).plan("morning") is None


def test_forms_of_terms_are_forced_as_often_as_they_occur(tokenizer) -> None:
    plan = planned(tokenizer, "good, good", GlossaryEntry("good", ("guten", "schön")))
    assert plan.reading.text == "good, good"
    assert forced(tokenizer, plan) == [["guten", "schön"]] * 2


def test_what_is_kept_is_read_as_stand_ins_that_are_not_in_the_text(tokenizer) -> None:
    plan = planned(tokenizer, "ab tom ab cd", GlossaryEntry("ab"), GlossaryEntry("cd"))
    assert plan.reading.text == "bahnhof tom bahnhof station"
    assert forced(tokenizer, plan) == [["bahnhof"], ["bahnhof"], ["station"]]
    restored = plan.restore("station, bahnhof tom bahnhofs", None)
    assert restored.text == "cd, ab tom abs ab"
    assert restored.misses == ()  # once is not twice


@pytest.mark.parametrize(
    ("text", "read", "written", "expected"),
    [
        ("{a}:{b} guten", "tom guten", "guten tom", "guten {a}:{b}"),
        ("{a}{b}/{a} {b}", "tom bahnhof", "bahnhof, tom", "{b}, {a}{b}/{a}"),
        ("guten ({a})", "guten ( tom)", "( tom) guten", "({a}) guten"),
        ("guten ({a})", "guten ( tom)", "guten: tom", "guten: {a}"),
        ("“{a}” guten", "“ tom” guten", "„ tom“ guten", "„{a}“ guten"),
        ("v{a} guten", "v tom guten", "guten v tom", "guten v{a}"),
        ("v{a} guten", "v tom guten", "positiv tom guten", "positiv {a} guten"),
        ("请看{a}页", "请看tom页", "tom guten", "{a} guten"),
        ("{a}x{b}", "tom x bahnhof", "tom x bahnhof", "{a}x{b}"),
        ("%dMB guten", "tom MB guten", "guten tom MB", "guten %dMB"),
    ],
)
def test_what_touches_a_kept_part_is_read_beside_a_whole_stand_in(tokenizer, text, read, written, expected) -> None:
    plan = planned(tokenizer, text, placeholders=True)
    assert plan.reading.text == read
    assert plan.restore(written, lambda _, __: (0, 5))[:2] == (expected, ())


def test_parts_are_not_joined_where_a_prefix_may_have_one_of_them(tokenizer) -> None:
    plan = planned(tokenizer, "{a}:{b}", placeholders=True, prefix="{a}:")
    assert plan.restore("{a}: bahnhof", None)[:2] == ("{a}:{b}", ())


@pytest.mark.parametrize("text", ["%d:%02d", "(%s|%s)", "{a} - {b}.", '"{a}"', "{a}"])
def test_kept_parts_and_signs_alone_need_no_model(tokenizer, text) -> None:
    plan = planned(tokenizer, text, placeholders=True)
    assert plan.is_all
    assert plan.without_model == text


@pytest.mark.parametrize("text", ["{a}x", "{a} 7", "{a}，", "good {a}"])
def test_words_numbers_and_signs_of_one_language_need_the_model(tokenizer, text) -> None:
    assert not planned(tokenizer, text, GlossaryEntry("good", ("guten",)), placeholders=True).is_all


def test_with_too_few_stand_ins_what_is_kept_is_forced_itself(tokenizer) -> None:
    names = ["ab", "cd", "ef", "gh"]
    plan = planned(tokenizer, " ".join(names), *map(GlossaryEntry, names))
    assert plan.stand_ins == (*STAND_INS, "")
    assert forced(tokenizer, plan) == [["gh"], ["tom"], ["bahnhof"], ["station"]]


def test_no_more_is_forced_than_a_search_can_hold(tokenizer) -> None:
    plan = planned(tokenizer, " ".join(["good"] * 9), GlossaryEntry("good", ("guten",)))
    assert len(forced(tokenizer, plan)) == MOST_FORCED


def test_nothing_is_forced_where_a_search_cannot(tokenizer) -> None:
    assert planned(tokenizer, "good", GlossaryEntry("good", ("guten",)), forces=False).constraints is None


def test_what_the_prefix_has_is_not_forced_again(tokenizer) -> None:
    plan = planned(tokenizer, "{a} good", placeholders=True, prefix="Tom {a}")
    assert plan.constraints is None
    assert plan.stand_ins == ("bahnhof",)
    assert plan.restore("Tom {a} guten", lambda _, __: (0, 7))[:2] == ("Tom {a} guten", ())
    plan = planned(tokenizer, "good", GlossaryEntry("good", ("guten",)), prefix="Ein")
    assert plan.restore("Ein Tom", lambda _, __: (0, 3))[:2] == ("Ein Tom", ("good",))


@pytest.mark.parametrize(
    ("prefix", "written", "expected"),
    [
        ("Schreibe", "Schreibe ab.", "Schreibe {a} ab."),
        ("In dem Park", "In dem Park ab", "In dem Park {a} ab"),
        ("In dem Par", "In dem Parlament ab", "In dem Parlament {a} ab"),
        ("公园", "公园里 ab", "公园 {a} 里 ab"),
        ("Ein ab", "Ein abt {a}.", "Ein abt {a}."),
        ("Die bahn", "Die bahnhof ab", "Die bahnhof {a} ab"),
    ],
)
def test_nothing_is_put_into_the_prefix(tokenizer, prefix: str, written: str, expected: str) -> None:
    plan = planned(tokenizer, "{a} ab", GlossaryEntry("ab"), placeholders=True, prefix=prefix)
    assert plan.restore(written, lambda _, __: (0, 2))[:2] == (expected, ())


@given(
    prefix=st.sampled_from(["T", "Tom ist", "{a}", "ab", "bahn", "Ein {b}. {a}"]),
    rest=st.text(alphabet=" .{}abtomhf", max_size=20),
    start=st.none() | st.integers(0, 12),
)
def test_a_translation_begins_with_its_prefix(tokenizer, prefix: str, rest: str, start: int | None) -> None:
    written = prefix + rest
    words = [found.span() for found in re.finditer(r"\S+", written)]
    aligned = next((word for word in words if start is not None and word[0] >= start), None)
    entries = GlossaryEntry("ab"), GlossaryEntry("good", ("guten",))
    plan = planned(tokenizer, "ab {a} good", *entries, placeholders=True, prefix=prefix)
    assert plan.restore(written, None if start is None else lambda _, __: aligned).text.startswith(prefix)


def test_stand_ins_are_written_no_more_often_than_they_are_read(tokenizer) -> None:
    def limited(text: str, **options) -> dict[str, int]:
        plan = planned(tokenizer, text, GlossaryEntry("good", ("guten",)), placeholders=True, **options)
        assert plan.constraints is not None
        return {tokenizer.decode(form): most for form, most in plan.constraints.at_most}

    assert limited("{a} {b} {a} good") == {"tom": 2, "bahnhof": 1}
    assert limited("{a} {b} {a} good", prefix="Ein {a}") == {"tom": 1, "bahnhof": 1}
    assert limited("{a} good", prefix="Ein {a}") == {"tom": 0}
    assert limited(" ".join(["{a}"] * (MOST_FORCED + 1))) == {"tom": MOST_FORCED + 1}


@pytest.mark.parametrize(
    ("term", "translation", "span"),
    [("C++", "good C++ tom", (5, 6)), (".NET", "good .NET tom", (6, 9)), ("50%", "good 50 % tom", (5, 7))],
)
def test_a_missing_term_takes_the_place_of_its_signs_too(tokenizer, term: str, translation: str, span) -> None:
    plan = planned(tokenizer, f"good {term} tom", GlossaryEntry(term, ("x",)))
    assert plan.restore(translation, lambda _, __: span).text == "good x tom"


def test_the_stop_of_a_term_at_the_end_of_a_sentence_stays(tokenizer) -> None:
    plan = planned(tokenizer, "good tom Inc.", GlossaryEntry("Inc.", ("x",)))
    assert plan.restore("good tom Inc.", lambda _, __: (9, 12)).text == "good tom x."


def test_a_missing_term_takes_the_place_of_the_aligned_word_but_not_of_another_term(tokenizer) -> None:
    entries = GlossaryEntry("good", ("guten",)), GlossaryEntry("morning", ("schön",))
    plan = planned(tokenizer, "good morning", *entries)
    places = {(0, 4): (0, 3), (5, 12): (4, 10)}
    assert plan.restore("Ein Morgen", lambda start, stop: places[start, stop])[:2] == ("guten schön", ())
    places[5, 12] = (0, 3)
    assert plan.restore("Ein Morgen", lambda start, stop: places[start, stop])[:2] == ("guten Morgen", ("morning",))
    assert plan.restore("guten Morgen", lambda _, __: None)[:2] == ("guten Morgen", ("morning",))


def test_a_stand_in_in_another_case_gives_its_whole_word_to_what_it_stands_for(tokenizer) -> None:
    plan = planned(tokenizer, "ab guten", GlossaryEntry("ab"))
    assert plan.restore("Das toms guten", lambda _, __: (4, 8))[:2] == ("Das ab guten", ())
    assert plan.restore("Das toms guten", lambda _, __: (0, 3))[:2] == ("Das ab guten", ())  # with no other word
    assert plan.restore("Das toms guten", None)[:2] == ("Das abs guten ab", ())


@pytest.mark.parametrize(
    ("translation", "place", "expected"),
    [
        ("tom guten tom.", (10, 13), "guten {a}."),
        ("tom guten tom.", (0, 3), "{a} guten."),
        ("tom guten tom.", None, "{a} guten."),
        ("toms guten tom.", (0, 4), "guten {a}."),  # a whole word is better
        ("tom, toms guten tom", (3, 4), "{a}, guten"),
        ("tom tom tom", (4, 7), "{a}"),
        ("tom tom tom", (8, 11), "{a}"),
    ],
)
def test_a_stand_in_that_is_there_too_often_is_taken_out(tokenizer, translation, place, expected) -> None:
    plan = planned(tokenizer, "{a} good", placeholders=True)
    assert plan.restore(translation, lambda _, __: place)[:2] == (expected, ())


@pytest.mark.parametrize(
    ("translation", "place", "expected"),
    [
        ("tom bahnhof station {d} guten {d}.", None, "{a} {b} {c} {d} guten."),
        ("tom bahnhof station {d} guten {d}.", (30, 33), "{a} {b} {c} guten {d}."),
        ("{d} {d} {d} tom bahnhof station", None, "{d} {a} {b} {c}"),
        ("{d} tom bahnhof {d}station {d}", (0, 3), "{d} {a} {b}{c}"),
        ("tom bahnhof station {d} {a}", None, "{a} {b} {c} {d}"),
    ],
)
def test_what_the_model_wrote_too_often_without_a_stand_in_is_taken_out(
    tokenizer, translation, place, expected
) -> None:
    plan = planned(tokenizer, "{a} {b} {c} {d} good", placeholders=True)
    assert plan.stand_ins == (*STAND_INS, "")
    restored = plan.restore(translation, lambda start, _: place if start == plan.reading.text.index("{d}") else None)
    assert restored[:2] == (expected, ())
    assert restored.rewriting.text == expected


def test_what_the_prefix_has_too_often_stays(tokenizer) -> None:
    plan = planned(tokenizer, "{a} good", placeholders=True, prefix="{a} {a}")
    assert plan.restore("{a} {a} guten {a}", None)[:2] == ("{a} {a} guten", ())


def test_what_the_prefix_has_needs_no_stand_in(tokenizer) -> None:
    plan = planned(tokenizer, "{a} good", placeholders=True, prefix="{a} ist")
    assert plan.restore("{a} ist tom guten", None)[:2] == ("{a} ist guten", ())


@pytest.mark.parametrize(
    ("translation", "place", "expected"),
    [
        ("Tippa guten.", (0, 5), "{a} guten {b}."),  # the one is where its name was distorted
        ("bahnhof guten.", (0, 7), "{b} {a} guten."),  # beside the other, in whose place it would be
        ("bahnhof guten.", None, "{b} guten {a}."),
        ("", None, "{a} {b}"),
        ("...", None, "... {a} {b}"),
    ],
)
def test_a_placeholder_whose_stand_in_was_lost_is_there_all_the_same(tokenizer, translation, place, expected) -> None:
    plan = planned(tokenizer, "{a} {b} good", placeholders=True)
    restored = plan.restore(translation, lambda start, _: place if start == 0 else None)
    assert restored[:2] == (expected, ())
    assert restored.rewriting.text == expected


def test_a_longer_word_that_begins_as_a_stand_in_is_another_word(tokenizer) -> None:
    plan = planned(tokenizer, "{a} good", placeholders=True)
    assert plan.restore("tomes guten", None)[:2] == ("{a}es guten", ())
    assert plan.restore("tomate guten", None)[:2] == ("tomate guten {a}", ())
    assert plan.restore("tomate tom", None)[:2] == ("tomate {a}", ())


def test_what_is_added_inside_a_word_does_not_begin_the_rest_of_it(tokenizer) -> None:
    plan = planned(tokenizer, "{a} {b} good", placeholders=True)
    assert plan.restore("tomes guten", lambda _, __: (0, 3))[:2] == ("{a} {b} es guten", ())


@given(st.data())
def test_each_placeholder_is_there_as_often_as_in_the_text(tokenizer, data) -> None:
    """Whatever the model makes of it, and wherever it looked."""
    marks = st.lists(st.sampled_from(["{a}", "{b}", "{c}", "good", ","]), min_size=1, max_size=6)
    text = " ".join(data.draw(marks))
    plan = planner(tokenizer, placeholders=True).plan(text)
    if plan is None:
        return
    words = st.lists(
        st.sampled_from(
            [
                "tom",
                "Toms",
                "toms",
                "station",
                "bahnhof",
                "x.",
                "-",
                ",",
                *(mark for mark in text.split() if "{" in mark),
            ]
        ),
        max_size=8,
    )
    translation = data.draw(st.sampled_from([" ", ""])).join(data.draw(words))
    spans = [word.span() for word in re.finditer(r"\w+", translation)]
    restored = plan.restore(translation, lambda _, __: data.draw(st.sampled_from([None, *spans])))
    assert restored.misses == ()
    assert [restored.text.count(mark) for mark in ("{a}", "{b}", "{c}")] == [
        text.count(mark) for mark in ("{a}", "{b}", "{c}")
    ]
    assert not re.search(rf"\b({'|'.join(filter(None, plan.stand_ins))})\b", restored.text)


def test_a_text_that_is_one_term_needs_no_model(tokenizer) -> None:
    plan = planned(tokenizer, "good", GlossaryEntry("good", ("guten",)))
    assert (plan.is_all, plan.without_model) == (True, "guten")
    assert not planned(tokenizer, "good.", GlossaryEntry("good", ("guten",))).is_all


def test_the_content_of_kept_elements_stays(tokenizer) -> None:
    made = planner(tokenizer, GlossaryEntry("good", ("guten",)), GlossaryEntry("tom"))
    plan = made.plan("good tom good +", [(0, 4), (5, 8), (14, 15)])
    assert plan is not None
    assert [(match.start, match.kept) for match in plan.matches] == [(0, True), (5, True), (9, False), (14, True)]
    assert made.plan("+", []) is None


def test_a_sign_of_the_sentence_is_no_surplus_of_a_kept_one(tokenizer) -> None:
    plan = planner(tokenizer).plan("good ? tom?", [(5, 6)])
    assert plan is not None
    assert plan.restore("guten ? tom?", None).text == "guten ? tom?"


@given(st.data())
def test_nothing_is_missing_that_is_not_named(tokenizer, data) -> None:
    words = st.sampled_from(["good", "tom", "{a}", "{b}", "bahnhof", "Bahnhofs", "guten", "x", ",", "toms", "station"])
    text = " ".join(data.draw(st.lists(words, min_size=1, max_size=6)))
    entries = GlossaryEntry("good", ("guten",)), GlossaryEntry("x")
    plan = planner(tokenizer, *entries, placeholders=True).plan(text)
    if plan is None:
        return
    translation = " ".join(data.draw(st.lists(words, max_size=6)))
    spans = [word.span() for word in re.finditer(r"\S+", translation)] or [None]
    restored = plan.restore(translation, lambda _, __: data.draw(st.sampled_from([None, *spans])))
    assert set(restored.misses) == {match.name for match in missing(plan.matches, restored.text)}
    assert restored.rewriting.text == restored.text


def test_a_planner_finds_what_is_not_to_be_split(tokenizer) -> None:
    made = planner(tokenizer, GlossaryEntry("Yahoo! Inc"), placeholders=True)
    assert list(made.spans("a Yahoo! Inc {b}")) == [(2, 12), (13, 16)]
    assert made.read("Yahoo! Inc.") == "tom."


def test_what_is_kept_does_not_grow_together_with_the_rest_of_a_word(tokenizer) -> None:
    plan = planned(tokenizer, "ab good", GlossaryEntry("ab"))
    *_, kept, rest = plan.restore("morgens", lambda _, __: (0, 6)).text.split()
    assert (kept, rest) == ("ab", "s")


def test_the_places_of_kept_parts_are_told(tokenizer) -> None:
    plan = planned(tokenizer, "%dMB {a} good {a}", GlossaryEntry("good", ("guten",)), placeholders=True)
    rewriting = plan.restore("guten bahnhof bahnhof tomMB", None).rewriting
    assert [rewriting.text[slice(*span)] for span in rewriting.kept] == ["{a}", "{a}", "%d"]
