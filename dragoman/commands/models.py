"""The command `dragoman models`: a table, or JSON."""

from collections.abc import Sequence
from typing import Final

from dragoman.access import Access
from dragoman.answers import Model
from dragoman.arguments import Parser
from dragoman.commands import model_source
from dragoman.commands.listing import write_list
from dragoman.commands.model_source import Named
from dragoman.exit_codes import EXIT_OK
from dragoman.loading import load

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
    write_list(listed, _FIELDS, as_json=options.json)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser("dragoman models", description="List the models of a folder or of a server.")
    model_source.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="a JSON list with an object for each model, not a table")
    return parser


def _served(address: str, let_in: Access) -> list[Model]:
    with model_source.connected(address, let_in, model_source.LIST_TIMEOUT_S) as client:
        return model_source.served(client, address)
