"""The command `dragoman bench`: one word more says what is measured."""

import importlib
import sys

from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_OK

_COMMANDS = {
    "compare": ("bench.compare.command", "Dragoman beside CTranslate2 and transformers, on the same weights"),
    "roofline": ("bench.roofline.command", "where a decode step and an encoder run spend their time, and what is left"),
}


def main(argv: list[str]) -> int:
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help"):
        print(_help())
        return EXIT_OK
    if name not in _COMMANDS:
        print(f"dragoman bench: no benchmark {name!r}; there are {', '.join(_COMMANDS)}", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS
    module = importlib.import_module(_COMMANDS[name][0])
    code: int = module.main(argv[1:])
    return code


def _help() -> str:
    width = max(map(len, _COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, (_, summary) in _COMMANDS.items()]
    return "\n".join(["usage: dragoman bench NAME [ARGUMENTS]    (dragoman bench NAME --help says more)", "", *lines])
