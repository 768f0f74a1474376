"""The arguments that measurements have in common: what is wrong with one is told in one line."""

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.arguments import Parser, output_file
from service.settings import DEFAULT_MODELS


def make_parser(program: str, description: str | None) -> Parser:
    return Parser(prog=program, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def add_bundle(parser: argparse.ArgumentParser) -> None:
    default = DEFAULT_MODELS / "en-de" / "bundle"
    help_ = "what is measured; by default the model that comes with the server"
    parser.add_argument("--bundle", type=Path, default=default, metavar="DIR", help=help_)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", type=output_file, metavar="OUT", help="also write all figures to this file")


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add what comes after `--`."""
    parser.add_argument("serve", nargs="*", help="arguments of dragoman serve, after --")


def number(text: str) -> float:
    """Read any finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _number_that(must: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not holds(value := number(text)):
            raise argparse.ArgumentTypeError(f"must be {must}, not {text}")
        return value

    return read


positive = _number_that("more than 0", lambda value: value > 0)
not_negative = _number_that("at least 0", lambda value: value >= 0)
share = _number_that("from 0 to 1", lambda value: 0 <= value <= 1)


def whole(text: str) -> int:
    """Read a whole number from 0 on."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def count(text: str) -> int:
    """Read a whole number from 1 on."""
    if (value := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def counts(text: str) -> list[int]:
    """Read whole numbers from 1 on, with commas between."""
    return [count(each) for each in text.split(",")]


def input_file(text: str) -> Path:
    """Read the name of a file that exists."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text}")
    return Path(text)


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a reader of names with commas between, all of them known."""

    def read(text: str) -> list[str]:
        chosen = text.split(",")
        if unknown := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"no {unknown[0]!r}; there are {', '.join(known)}")
        return chosen

    return read
