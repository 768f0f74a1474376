import re
import tomllib
from pathlib import Path
from random import Random

from model.augmentation import invention

_LISTS = tomllib.loads(Path(invention.__file__).with_name("words.toml").read_text(encoding="utf-8"))
_LISTED = {word for listed in _LISTS.values() for word in listed.split()}


def test_most_names_stand_in_no_list() -> None:
    random = Random(0)
    names = [name for name in (invention.name(random) for _ in range(1000)) if name.isalpha()]
    new = [name for name in names if name not in _LISTED]
    assert 0.6 * len(names) < len(new) < 0.95 * len(names)
    assert all(name[0].isupper() and len(name) > 1 for name in new)


def test_a_name_may_begin_as_one_name_and_end_as_another() -> None:
    random = Random(1)
    names = [name for name in (invention.name(random) for _ in range(1000)) if name.isalpha()]
    starts, ends = {word[:3] for word in _LISTED}, {word[-3:] for word in _LISTED}
    assert any(name not in _LISTED and name[:3] in starts and name[-3:] in ends for name in names)


def test_phone_and_account_numbers_and_dates_are_copied_but_no_prices() -> None:
    random = Random(2)
    made = [invention.copied(random) for _ in range(2000)]
    assert any(re.fullmatch(r"(\+\d{1,2} |0)\d+([ /-]\d+)+", thing) for thing in made)
    assert any(re.fullmatch(r"[A-Z]{2}\d{16,22}", thing) for thing in made)
    assert any(re.fullmatch(r"[A-Z]{2}\d{2}( \d{1,4})+", thing) for thing in made)
    assert any(re.fullmatch(r"\d{1,2}/\d{1,2}/\d{4}", thing) for thing in made)
    assert any(re.fullmatch(r"\d{1,2}\.\d{1,2}\.\d{4}", thing) for thing in made)
    assert not any(re.search(r"[$€£]\d+\.\d\d", thing) for thing in made)
