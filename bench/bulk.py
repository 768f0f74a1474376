"""CPU time of many lines: by `dragoman translate`, and by `dragoman bulk` in a process, on Ray and by a server.

    python -m bench.bulk --data train.tsv.xz [--count 100000] [--bundle models/en-de/bundle] [--json OUT]

All ways translate the same lines, one way after the other, on this machine; the outputs are compared line by line.
Below the table it says from which size on Ray's own CPU time is less than a tenth of that of the translations. Linux
only.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench import cpu_time, metrics_page
from bench.arguments import add_bundle, add_json, count, input_file, make_parser
from bench.cpu_time import Usage
from bench.files import write_json
from bench.load.texts import read_pairs
from bench.log import log_with_time
from bench.machine import machine, now
from bench.server_process import NOTHING_FREE, running, serve_command
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK

_SCRAPE_TIMEOUT_S: Final = 60.0
_SMALL_SHARE: Final = 0.1
_DRAGOMAN: Final = (sys.executable, "-m", "dragoman.cli")


class Way(NamedTuple):
    """What one way took.

    Attributes:
        name: of the way.
        cpu_s: of all processes but a server.
        server_cpu_s: of the server; 0 where there is none.
        resident_mib: the most of all processes but a server together, pages that they share counted for each.
        different: lines whose translation is not that of `dragoman translate`.
    """

    name: str
    cpu_s: float
    server_cpu_s: float
    resident_mib: float
    different: int


def main(argv: list[str]) -> int:
    """Print the table.

    Returns:
        0; 1 if an output differs.
    """
    parser = make_parser("python -m bench.bulk", __doc__)
    add = parser.add_argument
    add("--data", required=True, type=input_file, metavar="FILE", help="source<TAB>target lines; .gz, .xz")
    add("--count", type=count, default=100_000, metavar="N", help="lines, at most (%(default)s)")
    add_bundle(parser)
    add_json(parser)
    arguments = parser.parse_args(argv)
    lines = read_pairs(arguments.data, arguments.count)[0]
    with tempfile.TemporaryDirectory() as folder:
        ways = _measure(lines, arguments.bundle, Path(folder))
    text_bytes = sum(len(line.encode()) for line in lines)
    print(as_markdown(ways, len(lines)))
    print(pays_from(ways, len(lines), text_bytes))
    report = {"date": now(), "machine": machine(), "lines": len(lines), "text_bytes": text_bytes}
    write_json(arguments.json, report | {"ways": [way._asdict() for way in ways]})
    return EXIT_FAILED if any(way.different for way in ways) else EXIT_OK


def as_markdown(ways: Sequence[Way], lines: int) -> str:
    """Write a table."""
    head = (
        f"| {lines:,} lines | CPU s | of that, the server | CPU ms a line | memory MiB | different |\n"
        "| --- | --- | --- | --- | --- | --- |"
    )
    rows = (
        f"| {way.name} | {way.cpu_s + way.server_cpu_s:.1f} | {way.server_cpu_s:.1f} | "
        f"{1e3 * (way.cpu_s + way.server_cpu_s) / lines:.2f} | {way.resident_mib:.0f} | {way.different} |"
        for way in ways
    )
    return "\n".join([head, *rows])


def pays_from(ways: Sequence[Way], lines: int, text_bytes: int) -> str:
    """Say from which size on Ray costs little: its own time is what it takes more than one process."""
    cpu_s = {way.name: way.cpu_s for way in ways}
    own_s = cpu_s["bulk --ray"] - cpu_s["bulk --no-ray"]
    needed = own_s / _SMALL_SHARE / (cpu_s["bulk --no-ray"] / lines)
    return (
        f"Ray's own CPU time, {own_s:.1f} s, is less than a tenth of that of the translations from {needed:,.0f} lines "
        f"on ({needed * text_bytes / lines / 1e6:.1f} MB of text)."
    )


def _measure(lines: Sequence[str], bundle: Path, folder: Path) -> list[Way]:
    log = log_with_time()
    texts, rows, expected = folder / "lines.txt", folder / "rows.jsonl", folder / "expected.txt"
    texts.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rows.write_text("".join(json.dumps({"id": id_, "text": line}) + "\n" for id_, line in enumerate(lines)))
    models = ["--models", str(bundle)]
    log("translate")
    with texts.open("rb") as stdin, expected.open("wb") as stdout:
        usage = cpu_time.run([*_DRAGOMAN, "translate", *models], stdin=stdin, stdout=stdout)
    translations = expected.read_text(encoding="utf-8").split("\n")[:-1]
    ways = [_way("translate", usage, translations, translations)]
    for name, flags in (("bulk --no-ray", ["--no-ray"]), ("bulk --ray", ["--ray"])):
        log(name)
        ways.append(_bulk(name, [*models, *flags], rows, folder, translations))
    log("bulk --address")
    with running(serve_command(*models, *NOTHING_FREE, "--log-requests=none")) as server:
        before_s = _server_cpu_s(server.metrics_address)
        way = _bulk("bulk --address", ["--address", server.address], rows, folder, translations)
        ways.append(way._replace(server_cpu_s=_server_cpu_s(server.metrics_address) - before_s))
    log("done")
    return ways


def _bulk(name: str, flags: Sequence[str], rows: Path, folder: Path, expected: Sequence[str]) -> Way:
    out = folder / name
    command = [*_DRAGOMAN, "bulk", str(rows), str(out), "--id", "id", "--text", "text", *flags]
    usage = cpu_time.run(command)
    parts = (part.read_text(encoding="utf-8") for part in sorted(out.glob("part-*")))
    written = [json.loads(line) for part in parts for line in part.split("\n") if line]
    assert [row["id"] for row in written] == list(range(len(expected))), "each row once, in order"
    return _way(name, usage, [row["translation"] or "" for row in written], expected)


def _way(name: str, usage: Usage, translations: Sequence[str], expected: Sequence[str]) -> Way:
    different = sum(one != other for one, other in zip(translations, expected, strict=True))
    return Way(name, usage.cpu_s, 0.0, usage.resident_mib, different)


def _server_cpu_s(metrics_address: str) -> float:
    return metrics_page.read(metrics_address, _SCRAPE_TIMEOUT_S).sums()["process_cpu_seconds_total"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
