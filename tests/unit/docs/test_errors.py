"""docs/errors.md lists every reason, with the code and class of dragoman/errors.py, and none that does not exist."""

import inspect
import re
from pathlib import Path

import dragoman.errors
from dragoman import BundleError, DataError, DragomanError, UnrecognizedError

PAGE = (Path(__file__).parents[3] / "docs" / "errors.md").read_text(encoding="utf-8")
CLASSES = [
    kind
    for _, kind in inspect.getmembers(dragoman.errors, inspect.isclass)
    if issubclass(kind, DragomanError) and kind is not DragomanError
]
NEVER_ANSWERED = (BundleError, DataError)


def test_every_reason_has_its_row() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (\w+) \| `(\w+)` \|", PAGE, flags=re.MULTILINE)
    expected = {
        (kind.reason, "any" if kind is UnrecognizedError else kind.code.name, kind.__name__)
        for kind in CLASSES
        if kind not in NEVER_ANSWERED
    }
    assert len(rows) == len(set(rows))
    assert set(rows) == expected


def test_the_others_are_named_too() -> None:
    for kind in NEVER_ANSWERED:
        assert f"`{kind.__name__}` (`{kind.reason}`)" in PAGE


def test_retry_info_stands_where_a_class_has_a_delay() -> None:
    rows = re.findall(r"^\| `[A-Z_]+` \| \w+ \| `(\w+)` \| [^|]* \|([^|]*)\|", PAGE, flags=re.MULTILINE)
    with_delay = {kind.__name__ for kind in CLASSES if kind.default_retry_delay_s is not None}
    assert {name for name, details in rows if "RetryInfo" in details} == with_delay


def test_what_helps_to_repeat_says_so() -> None:
    rows = re.findall(r"^\| `[A-Z_]+` \| \w+ \| `(\w+)` \|.*\| ([^|]*) \|$", PAGE, flags=re.MULTILINE)
    again = {name for name, advice in rows if "then try again" in advice or advice.startswith("try again")}
    assert again == {kind.__name__ for kind in CLASSES if kind.retryable}
