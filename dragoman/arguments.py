"""What the arguments of all commands have in common: an error is one line; languages and addresses are checked."""

import argparse
import re
from collections.abc import Sequence
from typing import Final, NoReturn

from dragoman.address import Address
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS
from dragoman.language import AUTO, RULE, is_code
from dragoman.spelling import did_you_mean

_DIGITS: Final = re.compile("[0-9]{1,10}")
_MOST: Final = 2**32 - 1  # that a field of a message holds
_GRPC_SCHEMES: Final = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "xds:")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def parse_args(  # type: ignore[override]  # its overloads are for namespaces of other types
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Read the arguments, all of which must be known."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            hints = (did_you_mean(word.partition("=")[0], self._option_string_actions) for word in unknown)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{next(filter(None, hints), '')}")
        return options

    def error(self, message: str) -> NoReturn:
        """End the program with 2."""
        self.exit(EXIT_BAD_ARGUMENTS, f"{self.prog}: {' '.join(message.split())}\n")


def language(text: str) -> str:
    """Read the code of a language.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not is_code(text):
        raise argparse.ArgumentTypeError(f"{RULE}, is {text!r}")
    return text


def source_language(text: str) -> str:
    """Read the code of a language, or "auto" where it is to be detected; raises as :func:`language`."""
    return text if text == AUTO else language(text)


def count(text: str) -> int:
    """Read a number of things that a message can hold.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    return _within(text, 1)


def whole(text: str) -> int:
    """Read a whole number that a message can hold, 0 among them.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    return _within(text, 0)


def _within(text: str, least: int) -> int:
    if not _DIGITS.fullmatch(text) or not least <= (read := int(text)) <= _MOST:
        raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {_MOST}, is {text!r}")
    return read


def server_address(text: str) -> str:
    """Read where a server is: `host:port`, or another target of gRPC such as `unix:/path`.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    return text if text.startswith(_GRPC_SCHEMES) else host_and_port(text)


def host_and_port(text: str) -> str:
    """Read `host:port`.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    try:
        Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; given: {text!r}") from error
    return text
