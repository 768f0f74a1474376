"""The frame of every measurement: its command line, its errors, its rounds, its tables, its file, its exit code.

A measurement is a module: its docstring is the help of its command, `add_arguments(parser)` adds its arguments, and
`measure(arguments)` returns its figures.

Figures are names to numbers, texts, and lists of rows. `checks` are names of what must be so, and whether it is;
`details` are for the file only. All of bench lets a BundleError, a DataError, a ServerError
and errors of dragoman pass up to here.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from bench.arguments import add_json, make_parser
from bench.machine import environment, now
from bench.server_process import ServerError
from dragoman.arguments import Parser
from dragoman.errors import BundleError, DataError, DragomanError
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from dragoman.files import write_whole

Figures = dict[str, Any]
Log = Callable[[str], None]  # takes a line for people, for stderr
T = TypeVar("T")


class ArgumentError(Exception):
    """An argument is no good, which shows only together with others or with a file."""


def parser_of(name: str, measurement: Any) -> Parser:
    """Make the parser of `dragoman bench NAME`."""
    parser = make_parser(f"dragoman bench {name}", measurement.__doc__)
    measurement.add_arguments(parser)
    add_json(parser)
    return parser


def run(name: str, measurement: Any, argv: list[str]) -> int:
    """Measure, print Markdown, and write all figures where `--json` says.

    Returns:
        0; 1 when a check did not hold, a server did not start, or a call failed.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument, a file or the bundle is no good.
    """
    parser = parser_of(name, measurement)
    arguments = parser.parse_args(argv)
    started = now()
    try:
        figures = measurement.measure(arguments)
    except (ArgumentError, BundleError, DataError) as error:
        parser.error(str(error))
    except (DragomanError, ServerError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_FAILED
    print(as_markdown(figures))
    write_json(arguments.json, {"date": started, **environment(), "arguments": vars(arguments), **figures})
    return EXIT_FAILED if not_held(figures) else EXIT_OK


def write_json(path: Path | None, report: Mapping[str, Any]) -> None:
    """Write a report, if there is a file for it; what JSON does not have, such as a path, becomes text."""
    if path is not None:
        write_whole(path, json.dumps(report, indent=2, default=str).encode() + b"\n")


def log_with_time() -> Log:
    """Return a function that prints a line, after the seconds since this call."""
    start_s = time.monotonic()

    def log(text: str) -> None:
        print(f"{time.monotonic() - start_s:6.1f} s  {text}", file=sys.stderr, flush=True)

    return log


def not_held(figures: Mapping[str, Any]) -> list[str]:
    return [name for name, held in figures.get("checks", {}).items() if not held]


def as_markdown(figures: Mapping[str, Any]) -> str:
    """Write figures as a list, and each list of rows as a table; a figure that is None is left out."""
    return "\n".join([*(f"NOT SO: {name}" for name in not_held(figures)), *lines_of(figures)]).strip()


def lines_of(figures: Mapping[str, Any]) -> list[str]:
    """Write the lines of figures, without their checks."""
    lines: list[str] = []
    for name, value in figures.items():
        if name in ("checks", "details") or value is None:
            continue
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            lines += ["", *table(value), ""]
        else:
            lines.append(f"- {name}: {as_text(value)}")
    return lines


def table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Write rows as a Markdown table; a figure that a row does not have is left empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [_line(columns), _line(["---"] * len(columns))]
    return lines + [_line([as_text(row.get(column, "")) for column in columns]) for row in rows]


def as_text(value: Any) -> str:
    """Write a figure: floats with four digits, or whole from 10,000 on."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {as_text(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(as_text, value)) or "none"
    return "-" if value is None else str(value)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def in_turn(measures: Sequence[Callable[[], T]], rounds: int) -> list[list[T]]:
    """Measure A, B, A, B, ...: [measures][rounds]. What disturbs the machine for a while disturbs all."""
    turns = [[measure() for measure in measures] for _ in range(rounds)]
    return [list(figures) for figures in zip(*turns, strict=True)] if turns else [[] for _ in measures]
