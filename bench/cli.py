"""The command `dragoman bench`: one word more says what is measured."""

import importlib
import sys
from typing import Any, Final

from bench import frame
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_OK

# By name: the module, and what it is about.
MEASUREMENTS: Final = {
    "compare": ("compare.command", "Dragoman beside CTranslate2, on the same weights"),
    "overload": ("overload.command", "a server that is asked for several times what it can do"),
    "cold-start": ("cold_start", "from the start of a server until it serves, and its memory"),
    "way": ("way", "files, functions and Python calls that one call passes"),
    "training": ("training", "tokens a second of `dragoman train`, and where an update spends its time"),
    "kept": ("kept", "names, numbers, addresses and placeholders that a model keeps by itself"),
}


def main(argv: list[str]) -> int:
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(_help())
        return EXIT_OK
    if name not in MEASUREMENTS:
        print(f"dragoman bench: no benchmark {name!r}; there are {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS
    return frame.run(name, _module(name), argv[1:])


def parser_of(name: str) -> Parser:
    """Make the parser of a measurement."""
    return frame.parser_of(name, _module(name))


def _module(name: str) -> Any:
    return importlib.import_module(f"bench.{MEASUREMENTS[name][0]}")


def _help() -> str:
    width = max(map(len, MEASUREMENTS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in MEASUREMENTS.items()]
    return "\n".join(["usage: dragoman bench NAME [ARGUMENTS]    (dragoman bench NAME --help says more)", "", *lines])
