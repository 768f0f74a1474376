"""The command `dragoman load-test`: arguments to a load, and its report to wherever it is wanted."""

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

from bench.frame import write_json
from bench.load.calls import NoServerError
from bench.load.options import as_json, load_settings, parse
from bench.load.ramp import run_ramp
from bench.load.report import to_text
from bench.load.run import run_load
from bench.load.slo import judge, to_line
from bench.load.texts import DataFile, read_data_file
from bench.machine import environment, now
from dragoman import access
from dragoman.access import Access
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_INTERRUPTED, EXIT_OK
from dragoman.files import write_whole

EXIT_NO_ANSWER, EXIT_MISSED, EXIT_DIFFERENT = 1, 1, 3


def main(argv: list[str]) -> int:
    """Run the command and print its report; Ctrl-C ends the load and reports what there is.

    Returns:
        0; 1 when no request was answered, no rate held, or a target was missed; 3 when an answer was not the one
        given alone, or none could be compared; 130 after Ctrl-C.
    """
    arguments, parser = parse(argv)
    let_in = access.of(parser, arguments)
    try:
        data = read_data_file(arguments.data)
    except DataError as error:
        parser.error(str(error))
    _warn_of_broken_lines(data)
    to_page = _page_writer(arguments)
    started = now()
    try:
        measured = _measure(arguments, let_in, data.texts)
    except NoServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_NO_ANSWER
    measured["slo"] = judge(measured, arguments.slo)
    print(to_text(measured))
    report = {
        "date": started,
        "settings": as_json(arguments),
        "environment": environment(),
        "num_texts": len(data.texts),
        "num_broken_lines": len(data.broken_lines),
        **measured,
    }
    write_json(arguments.json, report)
    if to_page:
        write_whole(arguments.html, to_page(report).encode())
    return _exit_code(measured, parser.prog)


def _measure(arguments: argparse.Namespace, let_in: Access, texts: list[str]) -> dict[str, Any]:
    settings = load_settings(arguments, let_in)
    if arguments.ramp is None:
        return asyncio.run(run_load(settings, texts))
    return run_ramp(settings, texts, arguments.ramp, arguments.p95_ms, lambda line: print(line, file=sys.stderr))


def _exit_code(measured: dict[str, Any], program: str) -> int:
    missed = [verdict for verdict in measured["slo"] if not verdict["met"]]
    for verdict in missed:
        print(f"{program}: {to_line(verdict)}", file=sys.stderr)
    if measured.get("verify_different"):
        return EXIT_DIFFERENT
    if measured["interrupted"]:
        return EXIT_INTERRUPTED
    if not measured["completed"] or measured.get("highest_rate", 1.0) is None:
        return EXIT_NO_ANSWER
    if missed:
        return EXIT_MISSED
    return EXIT_OK if measured.get("verify_compared", 1) else EXIT_DIFFERENT


def _warn_of_broken_lines(data: DataFile) -> None:
    if data.broken_lines:
        first = ", ".join(str(number) for number in data.broken_lines[:5])
        more = ", ..." if len(data.broken_lines) > 5 else ""
        print(f"{len(data.broken_lines)} broken lines are left out: {first}{more}", file=sys.stderr)


def _page_writer(arguments: argparse.Namespace) -> Callable[[dict[str, Any]], str] | None:
    """Import the page before the load, so that a missing extra is known; not without --html: it takes a second."""
    if not arguments.html:
        return None
    from bench.load.page import run_page

    return run_page
