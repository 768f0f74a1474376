"""The command `dragoman models`: a table, or JSON."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final

from dragoman.access import Access
from dragoman.answers import Model
from dragoman.arguments import Parser
from dragoman.commands import model_source
from dragoman.commands.model_source import Named
from dragoman.exit_codes import EXIT_OK
from dragoman.loading import load

_TIMEOUT_S: Final = 10.0
_SHOWN: Final = 4  # languages in a cell of the table
_FIELDS: Final = {
    "NAME": "name",
    "FROM": "source_languages",
    "TO": "target_languages",
    "FAMILY": "family",
    "PRECISION": "precision",
    "MAX SOURCE": "max_source_tokens",
    "MAX TARGET": "max_target_tokens",
    "VOCABULARY": "vocabulary_size",
    "PARAMETERS": "parameters",  # a server does not tell
}


def models(arguments: list[str]) -> int:
    """List the models of a folder or of a server."""
    options, let_in = model_source.parse(build_parser(), arguments)
    listed: Sequence[Named]
    if options.address:
        listed = _served(options.address, let_in)
    else:
        manifests = load("service.commands.in_process:manifests")
        listed = [manifest for _, manifest in manifests(options.models)]
    rows = [{field: getattr(model, field, None) for field in _FIELDS.values()} for model in listed]
    text = json.dumps(rows, indent=2, ensure_ascii=False) if options.json else _table(rows)
    sys.stdout.buffer.write(text.encode() + b"\n")
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser("dragoman models", description="List the models of a folder or of a server.")
    model_source.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="a JSON list with an object for each model, not a table")
    return parser


def _served(address: str, let_in: Access) -> list[Model]:
    with model_source.connected(address, let_in, _TIMEOUT_S) as client:
        return model_source.served(client, address)


def _table(rows: Sequence[dict[str, Any]]) -> str:
    cells = [list(_FIELDS), *[[_cell(value) for value in row.values()] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """Write a value for a cell; of many languages the first ones."""
    if isinstance(value, tuple):
        return ",".join(value[:_SHOWN]) + (f",... ({len(value)})" if len(value) > _SHOWN else "")
    return "-" if value in (None, "") else str(value)
