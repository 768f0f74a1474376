"""The command `dragoman glossaries`: lists the stored glossaries of a server, as a table or JSON."""

from typing import Final

from dragoman import access
from dragoman.arguments import Parser, server_address
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.commands import model_source
from dragoman.commands.listing import write_list
from dragoman.exit_codes import EXIT_OK

_FIELDS: Final = {
    "NAME": "name",
    "FROM": "source_language",
    "TO": "target_language",
    "ENTRIES": "entries",
}


def glossaries(arguments: list[str]) -> int:
    """List the stored glossaries of a server."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    address = model_source.address_of(parser, options.address)
    if not address:
        parser.error(f"argument --address (or {ADDRESS_VARIABLE}): is required")
    with model_source.connected(address, access.of(parser, options), model_source.LIST_TIMEOUT_S) as client:
        listed = model_source.first_list(client.list_glossaries, address)
    write_list(listed, _FIELDS, as_json=options.json)
    return EXIT_OK


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser("dragoman glossaries", description="List the glossaries that a server has stored.")
    parser.add_argument(
        "--address",
        type=server_address,
        metavar="HOST:PORT",
        help=f"the server, such as 127.0.0.1:50051 ({ADDRESS_VARIABLE})",
    )
    access.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="a JSON list with an object for each one, not a table")
    return parser
