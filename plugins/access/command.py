"""The command `dragoman api-key`: a new key, and its line for the server's file."""

import sys

from dragoman.arguments import Parser, count, number
from dragoman.exit_codes import EXIT_OK
from plugins.access import api_keys


def api_key(arguments: list[str]) -> int:
    """Make an API key: its line goes to standard output, the key itself only to standard error."""
    limits = vars(build_parser().parse_args(arguments))
    name = limits.pop("name")
    key = api_keys.generate()
    print(api_keys.line_of(name, api_keys.entry_of(key, **limits)))
    print(f"the key, shown only this once: {key}", file=sys.stderr)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman api-key",
        description="Make an API key. The line for the server's file goes to standard output "
        "(dragoman api-key alice >> keys.toml), the key to standard error; it is kept nowhere.",
    )
    add = parser.add_argument
    add("name", help="owner of the key: up to 64 letters, digits, _ and -; shown in metrics")
    add("--requests-per-s", type=number, help="calls per second in the long run (default: unlimited)")
    add("--burst", type=count, help="calls at once after a pause (default: as many as in one second)")
    add("--concurrent-requests", type=count, help="calls at the same time (default: unlimited)")
    return parser
