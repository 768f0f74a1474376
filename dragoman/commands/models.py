"""The command `dragoman models`: lists models, as a table or JSON."""

import argparse
from collections.abc import Sequence
from typing import Final

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
    "PARAMETERS": "parameters",  # not sent by a server
    "NOTE": "note",
}
_CACHED_FIELDS: Final = {
    "NAME": "name",
    "MODEL": "model",
    "LICENCE": "licence",
    "MB": "megabytes",
    "LAST USED": "last_used",
}


def models(arguments: list[str]) -> int:
    """List the models of a folder or of a server."""
    options, let_in = model_source.parse(build_parser(), arguments)
    if options.cached or options.add or options.remove:
        return _cached(options)
    listed: Sequence[Named]
    if options.address:
        with model_source.connected(options.address, let_in, model_source.LIST_TIMEOUT_S) as client:
            listed = model_source.served(client, options.address)
    else:
        manifests = load("plugins.offline.in_process:manifests")
        listed = [manifest for _, manifest in manifests(options.models)]
    write_list(listed, _FIELDS, as_json=options.json)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman models",
        description="List the models of a folder, of a server, or of the cache folder into which names are imported.",
    )
    place = model_source.add_arguments(parser)
    place.add_argument("--cached", action="store_true", help="list the models of the cache folder")
    place.add_argument(
        "--add",
        nargs="+",
        metavar="NAME",
        help="import models into the cache folder, as dragoman serve would, and list it",
    )
    place.add_argument("--remove", nargs="+", metavar="NAME", help="remove models from the cache folder, and list it")
    parser.add_argument("--json", action="store_true", help="a JSON list with an object for each model, not a table")
    return parser


def _cached(options: argparse.Namespace) -> int:
    """Add or remove models of the cache folder, if the options ask for it, and list the cache."""
    if options.add:
        load("plugins.library.cached_models:add")(options.add)
    if options.remove:
        load("plugins.library.cached_models:remove")(options.remove)
    entries = load("plugins.library.cached_models:entries")()
    if entries or options.json:
        write_list(entries, _CACHED_FIELDS, as_json=options.json)
    else:
        print("the cache folder has no models; dragoman models --add NAME imports one")
    return EXIT_OK
