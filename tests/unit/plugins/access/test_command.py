"""A key for its owner, and a line for the server's file that does not hold it."""

import pytest

from dragoman.cli import main
from plugins.access import api_keys


def test_the_line_lets_the_key_in_with_its_limits_and_does_not_show_it(capsys) -> None:
    limits = ["--requests-per-s=2.5", "--burst=4", "--concurrent-requests=3"]
    assert main(["api-key", "alice", *limits]) == 0
    line, told = capsys.readouterr()
    assert told.startswith("the key, shown only this once: ")
    key = told.split()[-1]
    assert key not in line
    assert line.count("\n") == told.count("\n") == 1
    store = api_keys.parse(line.encode(), "keys.toml")
    assert store.find(key) == "alice"
    entry = store.entries["alice"]
    assert (entry.requests_per_s, entry.burst, entry.concurrent_requests) == (2.5, 4, 3)


def test_without_limits_there_are_none(capsys) -> None:
    assert main(["api-key", "bob"]) == 0
    entry = api_keys.parse(capsys.readouterr().out.encode(), "keys.toml").entries["bob"]
    assert (entry.requests_per_s, entry.burst, entry.concurrent_requests) == (None, None, None)


def test_every_key_is_another(capsys) -> None:
    keys = set()
    for _ in range(3):
        assert main(["api-key", "alice"]) == 0
        keys.add(capsys.readouterr().err.split()[-1])
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["a name"], "a name: must be 1 to 64 letters, digits, _ and -"),
        (["alice", "--requests-per-s=0"], ": --requests-per-s: must be greater than or equal to 0.000001; given: 0.0"),
        (["alice", "--requests-per-s=x"], "argument --requests-per-s: must be a number, is 'x'"),
        (["alice", "--burst=3"], ": --burst: needs --requests-per-s; given: 3"),
        (["alice", "--concurrent-requests=-1"], "argument --concurrent-requests: must be a whole number of at least 1"),
        (["alice", "--burst=many"], "argument --burst: must be a whole number of at least 1, is 'many'"),
        ([], "name"),
    ],
)
def test_what_is_wrong_is_one_line_and_makes_no_key(arguments: list[str], named: str, capsys) -> None:
    try:
        code = main(["api-key", *arguments])
    except SystemExit as left:
        code = left.code
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("dragoman api-key: ")
    assert named in err
