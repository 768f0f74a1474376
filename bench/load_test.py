"""The command `dragoman load-test`: how fast a server answers, and how much it can do.

The open loop (--rate) sends requests at random moments, whatever the server does, as users do who do not know
of each other; the latency of each counts from the moment it was due: a stall is charged with all who waited.
The closed loop (--concurrency) sends a request when the one before is answered: it finds the most that the
server can do.
"""

import argparse
import asyncio
import json
import math
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from bench.load import LoadSettings, NoServerError, run_load
from bench.report import to_text
from bench.texts import DataFile, DataFileError, read_data_file

EXIT_OK, EXIT_NO_ANSWER, EXIT_BAD_ARGUMENTS, EXIT_DIFFERENT, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
_VERIFIED_TEXTS = 500


def main(argv: list[str]) -> int:
    """Runs the command and prints its report; Ctrl-C ends the load and reports what there is.

    Returns:
        0; 1 when no request was answered; 3 when an answer was not the one given alone, or none could be compared;
        130 after Ctrl-C.

    Raises:
        SystemExit: With 2, after one line on stderr, when an argument or the data file is no good.
    """
    parser = _parser()
    arguments = _parse(parser, argv)
    try:
        data = read_data_file(arguments.data)
    except DataFileError as error:
        parser.error(str(error))
    _warn_of_broken_lines(data)
    started = datetime.now(UTC)
    try:
        measured = asyncio.run(run_load(_load_settings(arguments), data.texts))
    except NoServerError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return EXIT_NO_ANSWER
    print(to_text(measured))
    if arguments.json:
        _write_json(arguments.json, _with_context(measured, started, arguments, data))
    return _exit_code(measured)


def _exit_code(measured: dict[str, Any]) -> int:
    if measured.get("verify_different"):
        return EXIT_DIFFERENT
    if measured["interrupted"]:
        return EXIT_INTERRUPTED
    if not measured["completed"]:
        return EXIT_NO_ANSWER
    return EXIT_OK if measured.get("verify_compared", 1) else EXIT_DIFFERENT


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_BAD_ARGUMENTS, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="dragoman load-test", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--address", default="127.0.0.1:50051", metavar="HOST:PORT", help="the server (%(default)s)")
    add("--data", required=True, type=Path, metavar="FILE", help="source<TAB>target or text lines; .gz, .xz")
    loop = parser.add_mutually_exclusive_group(required=True)
    loop.add_argument("--rate", type=_positive, metavar="R", help="open loop: requests a second, Poisson")
    loop.add_argument("--concurrency", type=_count, metavar="N", help="closed loop: requests at once")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--duration", type=_positive, metavar="S", help="seconds of load, after the warm-up")
    end.add_argument("--requests", type=_count, metavar="K", help="closed loop: requests, after the warm-up")
    add("--warmup", type=_not_negative, default=0.0, metavar="S", help="seconds not to count (%(default)g)")
    add("--texts-per-request", type=_count, default=1, metavar="T", help="texts a request (%(default)s)")
    add("--source-language", default="", metavar="CODE", help="such as en; default: the model's")
    add("--target-language", default="", metavar="CODE", help="such as de; default: the model's")
    add("--model", default="", metavar="NAME", help="default: of the languages; without any, the first")
    add("--timeout", type=_positive, default=30.0, metavar="S", help="of each request (%(default)g)")
    add("--seed", type=_whole, default=0, metavar="N", help="of the arrivals (%(default)s)")
    add(
        "--verify",
        type=_count,
        nargs="?",
        const=_VERIFIED_TEXTS,
        default=0,
        metavar="N",
        help="send only the first N distinct texts (%(const)s), each first alone, and compare every answer under load "
        "with that one; exit code 3 when any differs. The server must run without its result cache "
        "(--result-cache-mb 0), else equal answers prove nothing",
    )
    add("--json", type=Path, metavar="OUT", help="also write the report, with all settings, to this file")
    return parser


def _parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    arguments = parser.parse_args(argv)
    if arguments.rate and arguments.requests:
        parser.error("argument --requests: not allowed with argument --rate; give --duration")
    # Found now, not after the test has run.
    if arguments.json and (arguments.json.is_dir() or not arguments.json.absolute().parent.is_dir()):
        parser.error(f"argument --json: cannot write a file {arguments.json}")
    return arguments


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _positive(text: str) -> float:
    if (value := _number(text)) <= 0:
        raise argparse.ArgumentTypeError(f"must be more than 0, not {text}")
    return value


def _not_negative(text: str) -> float:
    if (value := _number(text)) < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return value


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _count(text: str) -> int:
    if (value := _whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def _load_settings(arguments: argparse.Namespace) -> LoadSettings:
    return LoadSettings(
        address=arguments.address,
        rate=arguments.rate,
        concurrency=arguments.concurrency,
        duration_s=arguments.duration,
        requests=arguments.requests,
        warmup_s=arguments.warmup,
        texts_per_request=arguments.texts_per_request,
        source_language=arguments.source_language,
        target_language=arguments.target_language,
        model=arguments.model,
        timeout_s=arguments.timeout,
        seed=arguments.seed,
        verify_texts=arguments.verify,
    )


def _warn_of_broken_lines(data: DataFile) -> None:
    if data.broken_lines:
        first = ", ".join(str(number) for number in data.broken_lines[:5])
        more = ", ..." if len(data.broken_lines) > 5 else ""
        print(f"{len(data.broken_lines)} broken lines are left out: {first}{more}", file=sys.stderr)


def _with_context(
    measured: dict[str, Any], started: datetime, arguments: argparse.Namespace, data: DataFile
) -> dict[str, Any]:
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(arguments).items()}
    return {
        "date": started.isoformat(timespec="seconds"),
        "settings": settings,
        "num_texts": len(data.texts),
        "num_broken_lines": len(data.broken_lines),
        **measured,
    }


def _write_json(path: Path, report: dict[str, Any]) -> None:
    """Writes beside, then renames: the report is there whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(report, indent=2) + "\n")
    beside.replace(path)
