"""Lists of commands, as tables and as JSON."""

import json
from dataclasses import dataclass

import pytest

from dragoman.commands.listing import write_list


@dataclass
class Item:
    name: str
    codes: tuple[str, ...] = ()
    size: int = 0


FIELDS = {"NAME": "name", "CODES": "codes", "SIZE": "size", "AGE": "age"}


def test_a_table_has_the_first_of_many_values_and_a_dash_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    write_list([Item("", ("a",)), Item("bär", tuple("abcdef"), 7)], FIELDS, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "NAME  CODES            SIZE  AGE",
        "-     a                0     -",
        "bär   a,b,c,d,... (6)  7     -",
    ]


def test_without_items_there_are_the_heads_alone(capsys: pytest.CaptureFixture[str]) -> None:
    write_list([], FIELDS, as_json=False)
    assert capsys.readouterr().out == "NAME  CODES  SIZE  AGE\n"
    write_list([], FIELDS, as_json=True)
    assert json.loads(capsys.readouterr().out) == []


def test_json_has_all_values(capsys: pytest.CaptureFixture[str]) -> None:
    write_list([Item("bär", tuple("abcdef"))], FIELDS, as_json=True)
    [item] = json.loads(capsys.readouterr().out)
    assert item == {"name": "bär", "codes": list("abcdef"), "size": 0, "age": None}
