from bench.terms.tasks import Task, occurrences, tasks, unfit_tasks

LEXICON = {"house": {"Haus": 0.9, "Heim": 0.05}, "dog": {"Hund": 0.5, "Köter": 0.1}, "is": {"ist": 1.0}}
SOURCE = "The dog is in the house."


def test_a_term_is_whole_words() -> None:
    assert occurrences("Haus", "Haus, Hausboot, Boots-Haus, Rathaus, Haus") == 3
    assert occurrences("a.b", "a.b axb") == 1


def test_terms_are_first_of_all_what_the_translation_lacks() -> None:
    pairs, greedy = [(SOURCE, "Der Köter ist im Haus.")], ["Der Hund ist im Haus."]
    for terms, expected, of in ((1, ("Köter",), ("dog",)), (2, ("Köter", "Haus"), ("dog", "house"))):
        assert tasks(pairs, greedy, LEXICON, terms, 9) == [Task(SOURCE, expected, pairs[0][1], greedy[0], of)]
    assert tasks(pairs, greedy, LEXICON, 3, 9) == []


def test_what_is_no_term() -> None:
    lacks_none = "Der Hund ist im Haus."
    improbable = "Der Hund ist im Heim."
    twice = "Der Köter und der Köter."
    pairs = [(SOURCE, reference) for reference in (lacks_none, improbable, twice)]
    assert tasks(pairs, [lacks_none] * 3, LEXICON, 1, 9) == []


def test_no_more_than_are_wanted() -> None:
    pairs = [(SOURCE, "Der Köter.")] * 5
    assert len(tasks(pairs, ["Der Hund."] * 5, LEXICON, 1, 3)) == 3


def test_terms_that_do_not_fit_take_the_place_of_a_noun_in_the_reference() -> None:
    pairs = [(SOURCE, "Der Hund ist im Haus."), ("Such a pity.", "So ein Jammer!")]
    drawn = [unfit_tasks(pairs, ["Der Hund ist im Haus.", "Schade!"], LEXICON, 9, seed=seed) for seed in range(20)]
    expected = Task(SOURCE, ("Jammer",), "Der Jammer ist im Haus.", "Der Hund ist im Haus.", ("dog",))
    assert {tuple(found) for found in drawn} == {(), (expected,)}  # words of its own do fit
    assert unfit_tasks(pairs, ["Der Jammer.", "Schade!"], LEXICON, 9) == []
    assert (
        unfit_tasks(pairs * 9, ["Der Hund.", "Schade!"] * 9, LEXICON, 2)
        == unfit_tasks(pairs * 9, ["Der Hund.", "Schade!"] * 9, LEXICON, 9)[:2]
    )
