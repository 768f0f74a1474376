"""Texts of the command line as Unicode; items that are too many for one call of a server."""

import os

import pytest

from dragoman.commands.lines import as_unicode, in_calls, in_chunks
from dragoman.errors import (
    AnswerTooLargeError,
    DragomanError,
    FieldViolation,
    InvalidRequestError,
    QueueFullError,
    TextFailedError,
)

TOO_MUCH = [
    AnswerTooLargeError("large"),
    TextFailedError("one fails"),
    InvalidRequestError("many", violations=[FieldViolation("contents", "too many")]),
    InvalidRequestError("many", violations=[FieldViolation("pairs", "too many")]),
    InvalidRequestError("large", metadata={"max_request_bytes": "9"}),
]


@pytest.mark.parametrize("error", TOO_MUCH, ids=lambda error: str(error.violations or error.reason))
def test_what_is_too_much_for_a_call_is_halved_until_each_part_fits(error: DragomanError) -> None:
    calls: list[list[int]] = []

    def call(items: list[int]) -> list[str]:
        calls.append(items)
        if sum(items) > 9:
            raise error
        return [str(item) for item in items]

    assert in_calls(call, [1, 2, 3, 4, 50, 6], lambda error: error.reason) == ["1", "2", "3", "4", error.reason, "6"]
    assert calls[0] == [1, 2, 3, 4, 50, 6]
    assert [1, 2, 3] in calls


def test_another_error_ends_it() -> None:
    def call(items: list[int]) -> list[int]:
        raise QueueFullError("full")

    with pytest.raises(QueueFullError):
        in_calls(call, [1, 2], lambda error: 0)


def test_texts_are_divided_by_their_number_and_size() -> None:
    texts = [*["a"] * 600, "ü" * 200_000, "b", "c"]
    chunks = list(in_chunks(texts))
    assert [text for chunk in chunks for text in chunk] == texts
    assert [len(chunk) for chunk in chunks] == [512, 88, 1, 2]
    assert list(in_chunks([])) == []


def test_arguments_that_are_not_utf8_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert as_unicode("detect", ["a", os.fsdecode(b"bad\xff"), "ü"]) == ["a", "bad\ufffd", "ü"]
    assert capsys.readouterr().err == "dragoman detect: text 2 is not UTF-8; U+FFFD stands for bad bytes\n"


def test_many_arguments_that_are_not_utf8_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    as_unicode("detect", ["\udcff"] * 20)
    *named, last = capsys.readouterr().err.splitlines()
    assert len(named) == 5
    assert last == "dragoman detect: 20 texts are not UTF-8, the first 5 of them are named above"
