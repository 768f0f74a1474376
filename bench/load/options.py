"""The arguments of `dragoman load-test`, and the load that they ask for."""

import argparse
from pathlib import Path
from typing import Any

from bench.arguments import count, make_parser, not_negative, positive, share, whole
from bench.load.prepare import LoadSettings
from bench.load.ramp import FEWEST_REQUESTS
from bench.load.slo import MEASURES, Target
from dragoman import access
from dragoman.access import Access
from dragoman.arguments import Parser, host_and_port, output_file, server_address
from dragoman.arguments import count as field_count
from dragoman.channel import DEFAULT_ADDRESS

_VERIFIED_TEXTS = 500
# Of a load, where an argument has another name.
_FIELDS = {"duration": "duration_s", "warmup": "warmup_s", "timeout": "timeout_s", "verify": "verify_texts"}
_MOST_REQUESTS = 10_000_000  # their moments are drawn before the first is sent

_DESCRIPTION = """How fast a server answers, and how much it can do.

The open loop (--rate) sends requests at random moments, whatever the server does, as users do who do not know
of each other; the latency of each counts from the moment it was due, so a stall adds to that of all that waited.
The closed loop (--concurrency) sends a request when the one before is answered: it finds the most that the
server can do. The ramp (--ramp) runs open loops of --duration seconds each until it has found the highest rate at
which all are answered and 95 of 100 within --p95-ms.
"""


def parse(argv: list[str]) -> tuple[argparse.Namespace, Parser]:
    """Read the arguments; gives the parser, too, for what can be found wrong only later."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    if wrong := _contradiction(arguments):
        parser.error(wrong)
    return arguments, parser


def build_parser() -> Parser:
    parser = make_parser("dragoman load-test", _DESCRIPTION)
    _add_load(parser)
    _add_workload(parser)
    _add_output(parser)
    return parser


def load_settings(arguments: argparse.Namespace, let_in: Access) -> LoadSettings:
    """Return the load that the arguments ask for; of a ramp, without its rate."""
    given = {_FIELDS.get(name, name): value for name, value in vars(arguments).items()}
    given |= {
        "address": arguments.http or arguments.address,
        "http": bool(arguments.http),
        "access": let_in,
        "goodput_ms": _goodput_ms(arguments),
    }
    return LoadSettings(**{name: given[name] for name in LoadSettings.__dataclass_fields__})


def as_json(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return all settings, for the report, which others may read: without the API key."""
    return {name: value for name, value in vars(arguments).items() if name != "api_key"}


def _add_load(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    server = parser.add_mutually_exclusive_group()
    help_ = "the server (%(default)s)"
    server.add_argument("--address", type=server_address, default=DEFAULT_ADDRESS, metavar="HOST:PORT", help=help_)
    server.add_argument("--http", type=host_and_port, metavar="HOST:PORT", help="its HTTP port: requests go there")
    access.add_arguments(parser)
    loop = parser.add_mutually_exclusive_group(required=True)
    loop.add_argument("--rate", type=positive, metavar="R", help="open loop: requests per second, Poisson")
    loop.add_argument("--concurrency", type=count, metavar="N", help="closed loop: requests at once")
    loop.add_argument("--ramp", type=positive, metavar="R", help="find the highest rate, beginning at this one")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--duration", type=positive, metavar="S", help="seconds of load, after the warm-up")
    end.add_argument("--requests", type=count, metavar="K", help="closed loop: requests, after the warm-up")
    add("--warmup", type=not_negative, default=0.0, metavar="S", help="seconds not to count (%(default)g)")
    add("--p95-ms", type=positive, default=100.0, metavar="MS", help="target of the ramp (%(default)g)")
    add("--timeout", type=positive, default=30.0, metavar="S", help="of each request (%(default)g)")
    add("--stream", action="store_true", help="stream translations: adds the time to the first text")
    add("--seed", type=whole, default=0, metavar="N", help="of all that is random (%(default)s)")


def _add_workload(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="FILE", help="source<TAB>target or text lines; .gz, .xz")
    add("--texts-per-request", type=count, default=1, metavar="T", help="texts per request (%(default)s)")
    add("--repeat-share", type=share, default=0.0, metavar="P", help="share of texts asked for again and again")
    add("--bulk-share", type=share, default=0.0, metavar="P", help="share of requests of the priority bulk")
    add("--beam-size", type=field_count, default=0, metavar="N", help="of each request; default: that of the server")
    add("--source-language", default="", metavar="CODE", help="such as en; default: the model's")
    add("--target-language", default="", metavar="CODE", help="such as de; default: the model's")
    add("--model", default="", metavar="NAME", help="default: of the languages; without any, the first")
    verify = (
        "send only the first N distinct texts (%(const)s), each first alone, and compare every answer under load "
        "with that one; exit code 3 when any differs. The server must run without its result cache "
        "(--result-cache-mb 0), else equal answers prove nothing"
    )
    add("--verify", type=count, nargs="?", const=_VERIFIED_TEXTS, default=0, metavar="N", help=verify)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    good = "milliseconds within which an answer counts as good (default: the p95 asked for)"
    add("--goodput-ms", type=positive, metavar="MS", help=good)
    slo = f"exit with 1 where this is missed; may be given several times; NAME is one of {', '.join(MEASURES)}"
    add("--slo", type=Target.parse, action="append", default=[], metavar="NAME=VALUE", help=slo)
    metrics = "of the server's metrics: report what it says, too"
    add("--metrics-address", type=host_and_port, metavar="HOST:PORT", help=metrics)
    add("--json", type=output_file, metavar="OUT", help="write the report, with all settings, to this file")
    add("--html", type=output_file, metavar="OUT", help="write it as a page with plots, in one file")


def _contradiction(arguments: argparse.Namespace) -> str | None:
    """Name arguments that contradict each other, in one line."""
    for name in ("rate", "ramp"):
        if getattr(arguments, name) and arguments.requests:
            return f"argument --requests: not allowed with argument --{name}; give --duration"
    if arguments.ramp and arguments.verify:
        return "argument --verify: not allowed with argument --ramp"
    if arguments.rate and arguments.duration and (requests := arguments.rate * arguments.duration) > _MOST_REQUESTS:
        return f"argument --rate: a load must be at most {_MOST_REQUESTS:,} requests, is {requests:,.0f}"
    if arguments.ramp and (requests := arguments.ramp * arguments.duration) < FEWEST_REQUESTS:
        of_both = f"--ramp {arguments.ramp:g} for --duration {arguments.duration:g}"
        return f"argument --ramp: a step must be at least {FEWEST_REQUESTS} requests, {of_both} is {requests:g}"
    for target in arguments.slo:
        if target.measure.of_ramp != bool(arguments.ramp):
            return f"argument --slo: {target.name} is a measure of {'--ramp' if target.measure.of_ramp else 'one rate'}"
        if target.name == "first_text_p95_ms" and not arguments.stream:
            return f"argument --slo: {target.name} needs --stream"
    return None


def _goodput_ms(arguments: argparse.Namespace) -> float | None:
    """Return the bound of a good answer: as asked for, else the target of the p95."""
    if arguments.goodput_ms or arguments.ramp:
        bound_ms: float = arguments.goodput_ms or arguments.p95_ms
        return bound_ms
    return next((target.value for target in arguments.slo if target.name == "p95_ms"), None)
