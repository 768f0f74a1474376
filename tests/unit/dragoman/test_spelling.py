import re

import pytest

from dragoman.commands.translate import build_parser
from dragoman.spelling import did_you_mean
from service.settings import PREFIX, Settings

_VARIABLES = [PREFIX + name.upper() for name in Settings.model_fields]


def test_the_nearest_name_is_asked_for() -> None:
    assert did_you_mean("transalte", ["train", "translate"]) == "; did you mean translate?"
    assert did_you_mean("xyz", ["train", "translate"]) == ""


@pytest.mark.parametrize("name", _VARIABLES)
def test_a_slip_is_understood(name: str) -> None:
    middle = len(PREFIX) + (len(name) - len(PREFIX)) // 2
    missing, doubled = name[:middle] + name[middle + 1 :], name[:middle] + name[middle] + name[middle:]
    swapped = name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :]
    wrong, hyphen = name[:middle] + "X" + name[middle + 1 :], PREFIX + name.removeprefix(PREFIX).replace("_", "-")
    for slip in (missing, doubled, swapped, wrong, hyphen, f"{name}S"):
        assert did_you_mean(slip, _VARIABLES, PREFIX) == f"; did you mean {name}?"


@pytest.mark.parametrize("name", ["XYZ", "FOO", "HOST", "DEBUG", "VERBOSE", "LANGUAGE", "BATCH_SIZE"])
def test_a_prefix_makes_no_two_names_alike(name: str) -> None:
    assert did_you_mean(PREFIX + name, _VARIABLES, PREFIX) == ""


@pytest.mark.parametrize("flag", ["--bogus", "--verbose", "--quiet", "--fast", "--format", "--timeout", "--host"])
def test_a_flag_that_is_like_none_is_not_taken_for_one(flag: str) -> None:
    assert did_you_mean(flag, re.findall("--[a-z-]+", build_parser().format_help())) == ""
