"""Everything that is to be known of Dragoman on an NVIDIA GPU, in one call. It has not been run on a GPU yet.

    python -m bench.gpu [--checkpoint DIR] [--data FILE] [--work DIR] [--json OUT]

Needs the extras `gpu` (in place of `cpu`) and `train`; CTranslate2 is measured beside it where it can be imported.
One after the other, and a part that fails does not keep the others from running:

    placement   the CUDA provider is first in all sessions, and no node copies between devices
    parity      tokens of the fp16 bundle on the GPU beside those of the fp32 bundle on the CPU: equal sentences, BLEU
    floor       bytes of weights, keys and values that a step reads, over the measured bandwidth of a copy
    speed       tokens a second at 1, 2, 4, ... 1024 slots, beside CTranslate2 in fp16 and beside the floor
    served      `dragoman serve --device cuda` under load, every answer compared with the one given alone

`--device cpu` rehearses all of it without a GPU, with the engine's buffers where a GPU would have them (except in
`served`, where the server does what it does on a CPU); its figures mean nothing.
"""

import argparse
import json
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.load import report
from bench.load.texts import DataFileError
from dragoman.errors import BundleError

EXIT_OK, EXIT_FAILED, EXIT_BAD_ARGUMENTS = 0, 1, 2


def main(argv: list[str]) -> int:
    """Runs every part, prints the figures as they come, and writes them.

    Returns:
        0; 1 when a part failed, the others' figures are there all the same; 2, after one line on stderr, without
        a GPU or with a file that is no good.
    """
    arguments = _parser().parse_args(argv)
    try:
        from bench.gpu.rig import Rig, missing_device
    except ModuleNotFoundError as error:
        return _refuse(f"needs the extras gpu and train: no module {error.name!r}")
    if reason := missing_device(arguments.device):
        return _refuse(reason)
    with tempfile.TemporaryDirectory(prefix="dragoman-gpu-") as scratch:
        try:
            rig = Rig(
                arguments, arguments.work or Path(scratch), lambda figures: print(to_text("  ", figures), flush=True)
            )
        except (BundleError, DataFileError) as error:
            return _refuse(str(error))
        date = datetime.now(UTC).isoformat(timespec="seconds")
        found = {name: attempt(name, part) for name, part in rig.parts().items()}
    if arguments.json:
        arguments.json.write_text(json.dumps({"date": date, "device": arguments.device, **found}, indent=2) + "\n")
    failed = [name for name, figures in found.items() if "error" in figures]
    print(f"failed: {', '.join(failed)}" if failed else "all parts ran")
    return EXIT_FAILED if failed else EXIT_OK


def _refuse(reason: str) -> int:
    print(f"python -m bench.gpu: {reason}", file=sys.stderr)
    return EXIT_BAD_ARGUMENTS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.gpu",
        description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--device", choices=("cuda", "cpu"), default="cuda", help="(%(default)s)")
    add("--checkpoint", type=Path, default=Path("models/en-de/checkpoint"), metavar="DIR", help="(%(default)s)")
    add("--data", type=Path, default=Path("tests/data/en-de.tsv"), metavar="FILE", help="pairs (%(default)s)")
    add("--sentences", type=int, default=500, metavar="N", help="the first N pairs (%(default)s)")
    add("--most-slots", type=int, default=1024, metavar="N", help="(%(default)s)")
    add("--served-slots", type=int, default=256, metavar="N", help="of the server under load (%(default)s)")
    add("--seconds", type=float, default=20.0, metavar="S", help="of load (%(default)g)")
    add("--work", type=Path, metavar="DIR", help="keep bundles and converted models here, and use those that are here")
    add("--json", type=Path, metavar="OUT", help="write all figures to this file")
    return parser


def attempt(name: str, part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Runs a part and prints what it found; an exception is what it found, too."""
    print(f"{name} ...", flush=True)
    try:
        found = part()
    except Exception as error:
        traceback.print_exc()
        found = {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
    print(to_text(name, found), flush=True)
    return found


def to_text(name: str, figures: Mapping[str, Any]) -> str:
    """The figures of a part for people: one after another, or the report of a load test."""
    if "request_throughput" in figures:
        return f"{name}:\n{report.to_text(dict(figures))}"
    shown = [f"{key} {_number(value)}" for key, value in figures.items() if not isinstance(value, (dict, list))]
    return f"{name}: {', '.join(shown)}" if shown else f"{name}: {json.dumps(figures)}"


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
