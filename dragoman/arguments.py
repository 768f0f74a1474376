"""What the arguments of all commands have in common: an error is one line; languages and addresses are checked."""

import argparse
from typing import Final, NoReturn

from dragoman.address import Address
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS
from dragoman.language import RULE, is_code

_GRPC_SCHEMES: Final = ("dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:", "xds:")


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

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


def count(text: str) -> int:
    """Read a number of things, from 1.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, is {text!r}")
    return int(text)


def server_address(text: str) -> str:
    """Read where a server is: `host:port`, or another target of gRPC such as `unix:/path`.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    if not text.startswith(_GRPC_SCHEMES):
        try:
            Address.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{error}; given: {text!r}") from error
    return text
