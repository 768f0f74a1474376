"""The page of the command line: every command with its arguments, from the parsers themselves."""

import argparse
from collections import Counter
from collections.abc import Callable, Sequence, Set
from functools import partial

from bench.cli import MEASUREMENTS
from bench.cli import parser_of as bench
from bench.load.options import build_parser as load_test
from docs.generators.markdown import one_line, paragraphs, table
from dragoman.commands.detect import build_parser as detect
from dragoman.commands.glossaries import build_parser as glossaries
from dragoman.commands.models import build_parser as models
from dragoman.commands.score import build_parser as score
from dragoman.commands.translate import build_parser as translate
from export.cli import build_evaluate_parser, build_export_parser
from export.importing import build_parser as import_
from export.inspecting import build_parser as inspect
from export.quality import build_parser as calibrate
from model.cli import build_parser as train
from plugins.access.command import build_parser as api_key
from plugins.bulk.command import build_parser as bulk
from service.commands.serve import build_parser as serve
from service.settings import Settings

HEAD = """# The command line

Made by `make docs` from the parsers of the commands. `dragoman COMMAND --help` says the same."""
SHARED = """## Of several commands

Each of these commands names those that it takes."""
SHARED_FROM = 3  # commands that describe an argument in the same words
Row = tuple[str, str, str]
COLUMNS = ("argument", "required", "what")
OF_SERVE = "Each [setting](../configuration.md) is a flag, too."
PARSERS: tuple[Callable[[], argparse.ArgumentParser], ...] = (
    translate,
    bulk,
    detect,
    score,
    models,
    glossaries,
    api_key,
    train,
    build_export_parser,
    build_evaluate_parser,
    import_,
    calibrate,
    inspect,
    load_test,
    *[partial(bench, name) for name in MEASUREMENTS],
)


def page() -> str:
    """Write the page."""
    parsers = [build_parser() for build_parser in PARSERS]
    times = Counter(row for parser in parsers for row in _rows(parser))
    shared = [row for row, count in times.items() if count >= SHARED_FROM]
    parts = [HEAD, *_section(serve(), without=set(Settings.model_fields)), OF_SERVE]
    for parser in parsers:
        parts += _section(parser, shared)
    return "\n\n".join([*parts, SHARED, table(COLUMNS, shared)]) + "\n"


def _required(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    for group in parser._mutually_exclusive_groups:
        if group.required and action in group._group_actions:
            return f"one of {', '.join(each.option_strings[0] for each in group._group_actions)}"
    return "yes" if action.required and action.nargs not in ("*", "?") else ""


def _form(action: argparse.Action) -> str:
    """Write how an argument is given, such as `--slots N`."""
    if not action.option_strings:
        return f"`{_value(action)}`"
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(f"`{flag}{value}`" for flag in action.option_strings)


def _section(parser: argparse.ArgumentParser, shared: Sequence[Row] = (), without: Set[str] = frozenset()) -> list[str]:
    rows = _rows(parser, without)
    also = ", ".join(f"`{row[0].strip('`').split()[0]}`" for row in rows if row in shared)
    parts = [
        f"## {parser.prog}",
        paragraphs(parser.description or "", language=""),
        table(COLUMNS, [row for row in rows if row not in shared]),
    ]
    return [*parts, f"[And of several](#of-several-commands): {also}."] if also else parts


def _rows(parser: argparse.ArgumentParser, without: Set[str] = frozenset()) -> list[Row]:
    # argparse has no public way to ask for the arguments.
    actions = [each for each in parser._actions if each.dest not in {"help", *without}]
    return [(_form(each), _required(parser, each), _help(parser, each)) for each in actions]


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return one_line((action.help or "") % {**vars(action), "prog": parser.prog})


def _value(action: argparse.Action) -> str:
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = action.metavar or (action.dest.upper() if action.option_strings else action.dest)
    return {"*": f"[{name} ...]", "+": f"{name} ...", "?": f"[{name}]"}.get(str(action.nargs), str(name))
