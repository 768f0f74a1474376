import re
from random import Random

from model.augmentation import copying
from model.stand_ins import STAND_INS


def test_shared_words_give_way_to_what_is_copied() -> None:
    pair = ("We met Tilda in Oslo.", "Wir trafen Tilda in Oslo.")
    made = [copying.copies(pair, Random(seed)) for seed in range(50)]
    for source, target in made:
        assert source.startswith("We met ")
        assert source.endswith(".")
        if "Tilda" not in source:
            new = source.removeprefix("We met ").rpartition(" in ")[0]
            assert target.startswith(f"Wir trafen {new} in ")
    assert any("Tilda" not in source for source, _ in made)


def test_names_give_way_and_nothing_is_put_between_words() -> None:
    for seed in range(50):
        source, target = copying.names(("We met Tilda at 9 here.", "Wir trafen Tilda um 9 hier."), Random(seed))
        new = re.fullmatch(r"We met (.+) at (.+) here\.", source)
        assert new is not None
        assert target == f"Wir trafen {new[1]} um {new[2]} hier."
        assert (new[1], new[2]) != ("Tilda", "9")
        assert copying.names(("We wait.", "Wir warten."), Random(seed)) == ("We wait.", "Wir warten.")


def test_a_name_gives_way_before_the_hyphen_of_a_compound() -> None:
    pair = ("Call the getName method here.", "Rufen Sie hier die getName-Methode auf.")
    made = [copying.copies(pair, Random(seed)) for seed in range(50)]
    found = [re.fullmatch(r"Call the (.+) method here\.", source) for source, _ in made]
    changed = [(new[1], target) for new, (_, target) in zip(found, made, strict=True) if new and new[1] != "getName"]
    assert changed
    assert all(target == f"Rufen Sie hier die {new.replace(' ', '-')}-Methode auf." for new, target in changed)


def test_a_name_with_capitals_inside_gives_way_at_the_start_too() -> None:
    pair = ("HttpClient waits.", "HttpClient wartet.")
    assert any("HttpClient" not in source for source, _ in (copying.names(pair, Random(seed)) for seed in range(9)))


def test_only_a_replaced_word_is_the_first_part_of_a_compound() -> None:
    pair = ("- No way, man.", "- Auf keinen Fall, Mann.")
    assert not any("-- No" in copying.stand_ins(pair, Random(seed))[0] for seed in range(50))


def test_a_double_name_gives_way_as_a_whole() -> None:
    pair = ("We met Jean-Paul here.", "Wir trafen hier Jean-Paul.")
    assert all("-Paul" not in source for source, _ in (copying.names(pair, Random(seed)) for seed in range(50)))


def test_a_name_with_a_genitive_gives_way_on_both_sides_in_either_direction() -> None:
    pair = ("We saw Tilda's dog, didn't we?", "Wir sahen Tildas Hund, oder?")
    for seed in range(50):
        english, german = copying.names(pair, Random(seed))
        new = re.fullmatch(r"We saw (.+)'s dog, didn't we\?", english)
        assert new is not None
        assert new[1] != "Tilda"
        assert new[1][-1] not in "sxzß"
        assert german == f"Wir sahen {new[1]}s Hund, oder?"
        assert copying.names(pair[::-1], Random(seed)) == (german, english)
        assert copying.names(("It's a dog.", "Its ist ein Hund."), Random(seed))[0] == "It's a dog."


def test_a_name_gives_way_to_names_most_of_all_and_to_words_that_nobody_has() -> None:
    made = [copying.copies(("Tom is here.", "Tom ist hier."), Random(seed)) for seed in range(400)]
    new = [source.removesuffix(" is here.") for source, _ in made if re.fullmatch(r"[^:,()-]+ is here\.", source)]
    assert all(target.startswith(source.split()[0]) for source, target in made)
    names = [each for each in new if each.replace(" ", "").isalpha()]
    assert len(names) > len(new) / 2
    assert len(set(names)) > 0.8 * len(names)  # no list is that long


def test_a_number_gives_way_to_a_number_that_is_not_one() -> None:
    for seed in range(50):
        source, target = copying.copies(("Copy 48 files", "48 Dateien kopieren"), Random(seed))
        assert "48" not in source or len(source) > len("Copy 48 files")
        numbers = [[word for word in side.split() if word.isdecimal()] for side in (source, target)]
        assert numbers[0] == numbers[1] != ["1"]


def test_words_of_both_languages_stay() -> None:
    """The first word has a capital in any case; 1 asks for a singular; what stands twice has no one place."""
    for seed in range(50):
        for side in copying.copies(("Name: Tilda, Tilda, 1", "Name: Tilda, Tilda, 1"), Random(seed)):
            assert {"Name", "Tilda", "1"} <= set(re.findall(r"\w+", side))


def test_stand_ins_stand_at_marks_that_both_sides_have() -> None:
    pair = ("If it rains, we wait: then we go!", "Wenn es regnet, warten wir: dann gehen wir!")
    made = [copying.stand_ins(pair, Random(seed)) for seed in range(100)]
    for sides in made:
        source, target = ([word for word in re.findall(r"\w+", side) if word in STAND_INS] for side in sides)
        assert source == target
    assert sum("rains, we" not in source for source, _ in made) > 20


def test_things_at_one_place_come_in_the_order_given() -> None:
    places = [(2, 2), (0, 1), (2, 2), (2, 3)]
    assert copying.edited("abc", places, ["1", "2", "3", "4"]) == "2b134"


def test_what_is_put_beside_marks_alone_stands_for_itself() -> None:
    for seed in range(100):
        for sides in (copying.stand_ins(pair, Random(seed)) for pair in (("0", "?"), ("?", "?"))):
            source, target = ([word for word in re.findall(r"\w+", side) if word in STAND_INS] for side in sides)
            assert sorted(source) == sorted(target)
            assert source
