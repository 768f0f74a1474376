"""Numbers and files as arguments: what cannot be one is told in one line."""

import argparse
import math
from pathlib import Path


def number(text: str) -> float:
    """Any finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    if (value := number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, not {text}")
    return value


def not_negative(text: str) -> float:
    """A number from 0 on."""
    if (value := number(text)) < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return value


def share(text: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= (value := number(text)) <= 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, not {text}")
    return value


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1 on."""
    if (value := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def input_file(text: str) -> Path:
    """A file that is there."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"no file {text}")
    return Path(text)


def output_file(text: str) -> Path:
    """Found now, not after all has been measured."""
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"cannot write a file {text}")
    return path
