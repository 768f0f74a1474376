"""Arguments that several commands share: an error is one line; languages and addresses are checked."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from dragoman.address import Address, check_target
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS
from dragoman.language import AUTO, RULE, is_code
from dragoman.spelling import did_you_mean

_DIGITS: Final = re.compile("[0-9]{1,4300}")  # int() refuses longer numbers
_MOST: Final = 2**32 - 1  # the largest value of a message's field
# Names of the same flag; a command has one of each line.
_SAME_FLAGS: Final = (
    ("--from", "--source-language", "--source", "--src"),
    ("--to", "--target-language", "--target", "--tgt"),
)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage, and whose flags are written in full."""

    _given: Sequence[str] = ()

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        # By an abbreviation, `--target de` would be `--target-prefix de`, and never `--to de`.
        super().__init__(prog, allow_abbrev=False, **options)

    def parse_args(  # type: ignore[override]  # its overloads are for namespaces of other types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Read the arguments; an unknown argument is an error."""
        self._given = list(sys.argv[1:] if args is None else args)
        options, unknown = self.parse_known_args(self._given, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._meant(unknown)}")
        return options

    def error(self, message: str) -> NoReturn:
        """Exit with code 2; where a required argument is missing because it is misspelt, suggest the right spelling."""
        if message.startswith("the following arguments are required"):
            flags = [word for word in self._given if word.startswith("--")]
            unknown = [word for word in flags if word.partition("=")[0] not in self._option_string_actions]
            if hint := self._meant(unknown):
                message += f"; unrecognized: {' '.join(unknown)}{hint}"
        self.exit(EXIT_BAD_ARGUMENTS, f"{self.prog}: {' '.join(message.split())}\n")

    def _meant(self, words: Sequence[str]) -> str:
        """Suggest the flag that is most like one of these words; "" where no flag is like any."""
        known = self._option_string_actions
        for word in (word.partition("=")[0] for word in words):
            same = [flag for flags in _SAME_FLAGS if word in flags for flag in flags if flag in known]
            if hint := did_you_mean([*same, word][0], known):
                return hint
        return ""


def output_file(text: str) -> Path:
    """Read the name of a file that can be written: a wrong one is found before any work."""
    path = Path(text)
    if path.is_dir():
        why = "is a folder" if text else "has no name"
    elif not path.absolute().parent.is_dir():
        why = f"there is no folder {path.parent}"
    else:
        return path
    raise argparse.ArgumentTypeError(f"cannot write a file {text!r}: {why}")


def language(text: str) -> str:
    """Read the code of a language.

    Raises:
        argparse.ArgumentTypeError: the text is no code of a language.
    """
    if not is_code(text):
        raise argparse.ArgumentTypeError(f"{RULE}, is {text!r}")
    return text


def source_language(text: str) -> str:
    """Read the code of a language, or "auto" to have it detected; raises as :func:`language`."""
    return text if text == AUTO else language(text)


def count(text: str) -> int:
    """Read a count, from 1 to the largest value of a message's field.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    return _within(text, 1)


def whole(text: str) -> int:
    """Read a whole number, from 0 to the largest value of a message's field.

    Raises:
        argparse.ArgumentTypeError: the text is no such number.
    """
    return _within(text, 0)


def number(text: str) -> float:
    """Read any number.

    Raises:
        argparse.ArgumentTypeError: the text is no number.
    """
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, is {text!r}") from None


def _within(text: str, least: int) -> int:
    """Read a number that fits a message's field; a server may have a lower limit, and then answers with an error."""
    read = int(text) if _DIGITS.fullmatch(text) else -1
    if read < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, is {text!r}")
    if read > _MOST:
        raise argparse.ArgumentTypeError(f"must be at most {_MOST}, is {text!r}")
    return read


def server_address(text: str) -> str:
    """Read the address of a server: `host:port`, or another gRPC target such as `unix:/path`.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    return _checked(check_target, text)


def host_and_port(text: str) -> str:
    """Read `host:port`.

    Raises:
        argparse.ArgumentTypeError: the text has another form.
    """
    return _checked(Address.parse, text)


def _checked(check: Callable[[str], object], text: str) -> str:
    try:
        check(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; given: {text!r}") from error
    return text
