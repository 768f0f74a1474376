"""The command `dragoman load-test compare`: two runs side by side, figure by figure."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.arguments import input_file, make_parser, output_file
from bench.files import write_whole
from bench.load.comparison import compare, conclusion, different_settings
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_OK


class RunFileError(Exception):
    """A file is no report of a load test."""


def main(argv: list[str]) -> int:
    parser = build_parser()
    arguments = parser.parse_args(argv)
    try:
        before, after = (read_run(path) for path in (arguments.before, arguments.after))
    except RunFileError as error:
        parser.error(str(error))
    if arguments.html:
        from bench.load.page import compare_page  # here: matplotlib takes a second

        names = (arguments.before.name, arguments.after.name)
        write_whole(arguments.html, compare_page(names, before, after))
    print(to_text(before, after))
    return EXIT_OK


def build_parser() -> Parser:
    parser = make_parser("dragoman load-test compare", __doc__)
    add = parser.add_argument
    add("before", type=input_file, metavar="A.json", help="a run, as --json wrote it")
    add("after", type=input_file, metavar="B.json", help="another one, which is judged by the first")
    add("--html", type=output_file, metavar="OUT", help="also write a page with plots, in one file")
    return parser


def read_run(path: Path) -> dict[str, Any]:
    """Read a report.

    Raises:
        RunFileError: the file is none; the message is one line.
    """
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunFileError(f"cannot read {path}: {error}") from error
    if not isinstance(report, dict) or not {"settings", "completed", "timeline", "mode"} <= report.keys():
        raise RunFileError(f"{path} is no report of a load test, as --json writes it")
    return report


def to_text(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    rows = compare(before, after)
    lines = [f"{'':<26}{'first':>12}{'second':>12}{'ratio':>8}  verdict"]
    lines += [
        f"{f'{row.name}, {row.unit}'.rstrip(', '):<26}{row.before:>12.4g}{row.after:>12.4g}"
        f"{'-' if row.ratio is None else f'{row.ratio:.2f}':>8}  {row.verdict}"
        for row in rows
    ]
    lines += ["", conclusion(rows)]
    lines += [f"not alike: {name}: {one} and {other}" for name, one, other in different_settings(before, after)]
    return "\n".join(lines)
