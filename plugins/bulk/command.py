"""The command `dragoman bulk`: reads files of rows, and writes the rows with translations, each exactly once."""

import argparse
import os
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from dragoman import access
from dragoman.access import Access
from dragoman.arguments import Parser, count
from dragoman.bundle import Manifest, sha256
from dragoman.commands import model_source
from dragoman.commands.lines import complain
from dragoman.exit_codes import EXIT_OK
from plugins.bulk import here, on_ray, open_worker
from plugins.bulk.columns import Columns
from plugins.bulk.formats import SUFFIXES
from plugins.bulk.inputs import listed
from plugins.bulk.job import InputFile, Job, begun, complete
from plugins.bulk.plan import Chunk, planned
from plugins.bulk.progress import watched
from plugins.bulk.worker import Done
from plugins.offline import in_process
from service.settings import PREFIX, Settings

_COMMAND: Final = "bulk"
_PART_ROWS: Final = 4_096
# Calls of one client: they keep the servers busy while a part is read or written.
_CALLS_AT_A_TIME: Final = 4
# Bytes of text above which Ray's own CPU time is less than a tenth of that of the translations, see bench/RESULTS.md.
_RAY_PAYS_BYTES: Final = 4_000_000
# Settings that change translations, or which rows have one.
_SETTINGS: Final = (
    "device",
    "beam_size",
    "max_target_factor",
    "max_target_offset",
    "stop_repetition",
    "max_text_bytes",
)


def bulk(arguments: list[str]) -> int:
    """Translate files.

    Returns:
        0 once all rows are written, including rows with an error.
    """
    parser = build_parser()
    options, let_in = model_source.parse(parser, arguments)
    columns = Columns(options.id, options.text)
    if columns.id == columns.text:
        parser.error(f"arguments --id and --text: must be two columns, are both {columns.id!r}")
    files = listed(options.inputs, options.out)
    chunks = planned(files, columns, options.part_rows)
    model = _model(options, let_in)
    settings = None if options.address else in_process.read_settings()
    with begun(options.out, _job(options, files, model, settings)):
        _make(chunks, options, _task(options, let_in, model), settings)
        complete(options.out)
        rows = _rows(chunks)
        said = "the row is" if rows == 1 else f"all {rows} rows are"
        parts = "1 part" if len(chunks) == 1 else f"{len(chunks)} parts"
        complain(_COMMAND, f"{said} in {options.out} ({parts})")
    return EXIT_OK


def _make(
    chunks: Sequence[Chunk], options: argparse.Namespace, task: dict[str, Any], settings: Settings | None
) -> None:
    """Make the missing parts."""
    left = [chunk for chunk in chunks if not chunk.part(options.out).exists()]
    if not left:
        return
    rows, rows_left = _rows(chunks), _rows(left)
    uses_ray, why = _way(options, sum(chunk.size_bytes for chunk in left))
    where = "on Ray" if uses_ray else "by servers" if options.address else "in this process"
    complain(_COMMAND, f"{rows_left} of {rows} rows are left; {where}: {why}")
    if uses_ray:
        dones = _on_ray(left, task, settings)
    else:
        at_a_time = _CALLS_AT_A_TIME if options.address else 1
        dones = here.run(left, open_worker.open_worker(**task), at_a_time=at_a_time)
    done = watched(_COMMAND, dones, rows, rows - rows_left)
    complain(_COMMAND, f"{'1 row is' if done.rows == 1 else f'{done.rows} rows are'} done, {done.failed} with an error")


def _rows(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.rows for chunk in chunks)


def build_parser() -> Parser:
    """Build the parser of the command line."""
    parser = Parser(
        "dragoman bulk",
        description="Translate a column of files into a folder. Each row is written exactly once: started again after "
        "any end, the same command goes on. A row that cannot be translated has an error, and ends nothing.",
    )
    add = parser.add_argument
    add(
        "inputs",
        nargs="+",
        type=Path,
        metavar="IN",
        help=f"a file ({', '.join(SUFFIXES)}), or a folder with such files",
    )
    add("out", type=Path, metavar="OUT", help="a folder for the output: parts in the format and the order of the input")
    add("--id", required=True, metavar="COLUMN", help="column with an id for each row, which no other row has")
    add("--text", required=True, metavar="COLUMN", help="column with the texts to translate")
    model_source.add_arguments(parser)
    model_source.add_choice(parser)
    add("--part-rows", type=count, default=_PART_ROWS, metavar="N", help="rows of a part, at most (%(default)s)")
    add(
        "--ray",
        action=argparse.BooleanOptionalAction,
        help=f"work in actors of Ray, on the cluster of {on_ray.ADDRESS_VARIABLE} or else on this machine; default: "
        f"where {on_ray.ADDRESS_VARIABLE} is set, from {_RAY_PAYS_BYTES // 10**6} MB of text on, without --address",
    )
    return parser


def _model(options: argparse.Namespace, let_in: Access) -> dict[str, str]:
    """Identify the model that the options mean."""
    chosen = model_source.chosen(options)
    if not options.address:
        manifests: Sequence[Manifest] = [manifest for _, manifest in in_process.manifests(options.models)]
        return open_worker.identity_of(model_source.choose(manifests, *chosen))
    with model_source.connected(options.address, let_in, model_source.LIST_TIMEOUT_S) as client:
        return open_worker.identity_of(model_source.choose(model_source.served(client, options.address), *chosen))


def _job(options: argparse.Namespace, files: Sequence[Path], model: dict[str, str], settings: Settings | None) -> Job:
    _, source, target = model_source.chosen(options)
    return Job(
        dragoman=version("dragoman"),
        files=tuple(InputFile(name=file.name, sha256=sha256(file)) for file in files),
        id_column=options.id,
        text_column=options.text,
        part_rows=options.part_rows,
        model=model | {"source": source, "target": target},
        settings={} if settings is None else {name: str(getattr(settings, name)) for name in _SETTINGS},
    )


def _task(options: argparse.Namespace, let_in: Access, model: dict[str, str]) -> dict[str, Any]:
    """Build the arguments of `open_worker.open_worker`."""
    _, source, target = model_source.chosen(options)
    return {
        "out": options.out.resolve(),
        "id_column": options.id,
        "text_column": options.text,
        "identity": model,
        "source": source,
        "target": target,
        "models": options.models and in_process.folders(options.models),
        "address": options.address,
        "let_in": let_in,
    }


def _way(options: argparse.Namespace, left_bytes: int) -> tuple[bool, str]:
    """Decide whether to use Ray, and say why."""
    if options.ray is not None:
        return options.ray, "--ray" if options.ray else "--no-ray"
    if options.address:
        return False, options.address
    if not os.environ.get(on_ray.ADDRESS_VARIABLE):
        return False, f"{on_ray.ADDRESS_VARIABLE} names no cluster"
    bound = f"{_RAY_PAYS_BYTES / 1e6:.0f} MB of text on, there are {left_bytes / 1e6:.1f}"
    return left_bytes >= _RAY_PAYS_BYTES, f"a cluster pays from {bound}"


def _on_ray(chunks: Sequence[Chunk], task: dict[str, Any], settings: Settings | None) -> Iterator[Done]:
    # By default, actors have one thread each: they share neither Python's global lock nor memory.
    threads = 1 if settings is None else settings.threads or 1
    own = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    own.pop(access.API_KEY_VARIABLE, None)
    variables = own | {"GRPC_VERBOSITY": "NONE", f"{PREFIX}THREADS": str(threads)}
    return on_ray.run(chunks, on_ray.Opening(open_worker.TARGET, task, variables, threads))
