"""The command `dragoman bench`: one word more says what is measured."""

import importlib
import sys
from typing import Any, Final

from bench import frame
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_OK

# By name: the module, and what it is about.
MEASUREMENTS: Final = {
    "compare": ("compare.command", "Dragoman beside CTranslate2 and transformers, on the same weights"),
    "roofline": ("roofline.command", "where a decode step and an encoder run spend their time, and what is left"),
    "overload": ("overload.command", "a server that is asked for several times what it can do"),
    "large": ("large", "random models of the shapes of OPUS-MT and NLLB-600M: memory, disk, speed"),
    "many-models": ("many_models", "12 models in the memory of 4, a minute of load"),
    "processes": ("processes", "one server of one and of two processes"),
    "replicas": ("replicas", "one and two servers"),
    "http": ("http", "a call by its protocol: gRPC, and those of HTTP"),
    "way": ("way", "files, functions and Python calls that one call passes"),
    "cold-start": ("cold_start", "from the start of a server until it serves, and its memory"),
    "reload-soak": ("reload_soak", "20 reloads of a serving server, resident memory after each"),
    "bulk-stream": ("bulk_stream", "a million texts over one call, resident memory on the way"),
    "training": ("training", "tokens a second of training, and where an update spends its time"),
    "kept": ("kept", "names, numbers, addresses and placeholders that a model keeps by itself"),
    "placeholders": ("placeholders", "names and placeholders that stay as they are"),
    "tags": ("tags", "tags of HTML around the right words"),
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
