import pytest

from plugins.bulk.columns import Columns, Outcome, checked_id, wrong_columns, wrong_text


def test_ids_are_strings_or_whole_numbers() -> None:
    assert (checked_id("a"), checked_id(7), checked_id(2**70)) == ("a", "7", str(2**70))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "must be a string or a whole number, is null"),
        (True, "must be a string or a whole number, is a boolean"),
        (1.0, "must be a string or a whole number, is 1.0"),
        (["a"], "must be a string or a whole number, is a list"),
        ("", "is empty"),
        ("\udcff", "is no valid Unicode"),
    ],
)
def test_anything_else_is_no_id(value: object, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        checked_id(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a", ""),
        ("", "is empty"),
        (" \t\n", "is empty"),
        (None, "must be a string, is null"),
        (7, "must be a string, is a number"),
        ("a\ud800", "is no valid Unicode"),
    ],
)
def test_what_is_wrong_with_a_text(value: object, why: str) -> None:
    assert wrong_text(value) == why


def test_a_missing_column_is_named_with_those_that_there_are() -> None:
    assert wrong_columns(["id", "text", "more"], Columns("id", "text")) == ""
    assert wrong_columns(["id", "body"], Columns("id", "text")) == "has no column 'text'; there are: id, body"
    assert wrong_columns([], Columns("id", "text")) == "has no column 'id'; there are: none"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1"])
def test_columns_in_another_encoding_are_not_shown(encoding: str) -> None:
    head = "id,text,größe".encode(encoding).decode(errors="surrogateescape")
    assert wrong_columns(head.split(","), Columns("id", "text")) == "is not UTF-8"


def test_a_column_that_is_read_is_there_once() -> None:
    columns = Columns("id", "text")
    assert wrong_columns(["text", "id", "text"], columns) == "has 2 columns 'text', must have one"
    assert wrong_columns(["id", "text", "id", "id"], columns) == "has 3 columns 'id', must have one"
    assert wrong_columns(["id", "text", "", ""], columns) == ""


@pytest.mark.parametrize("name", Outcome._fields)
def test_a_column_of_the_output_is_taken(name: str) -> None:
    wrong = wrong_columns(["id", "text", name], Columns("id", "text"))
    assert wrong == f"has a column {name!r}, which is the name of a column of the output"
