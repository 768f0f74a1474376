"""Dragoman on an NVIDIA GPU: all that is to be checked and measured, in one call.

    python -m bench.gpu [--sizes default,base,large] [--work DIR] [--json FILE]

Needs the extras `gpu` (in place of `cpu`), `train`, `import` and `peers`. Each part is a process of its own with its
share of the time. One that fails, crashes or hangs does not keep the others from running, and what it found before is
kept; what there is no time for is named. The file is written anew after each. In order:

    libraries   the GPU, its driver, the packages
    models      bundles in fp16 and fp32, and the model of CTranslate2: of each size before it is needed
    graphs      the same tokens with CUDA graphs and without, up to the last position of the caches
    nan         the same tokens with caches full of NaN at first
    placement   the CUDA provider is first, and nothing is copied between devices
    parity      tokens of the fp16 bundle on the GPU beside those of the fp32 bundle on the CPU: equal sentences, BLEU
    bits        the logits of one sentence in the company of 0, 1, 3, ... others
    memory      of the device over 100,000 segments
    reload      `dragoman serve --device cuda` under load while its model is replaced, every answer compared
    load-test   the same without reloads
    speed       tokens a second at 1, 2, 4, ... 1024 slots, beside the floor; each size
    peer        the same of CTranslate2 in fp16

The floor is what a step must read, weights, keys and values, over the measured bandwidth of a copy. `--device cpu`
rehearses all of it without a GPU, with the engine's buffers where a GPU would have them (except in `reload` and
`load-test`, where the server does what it does on a CPU) and with small numbers; its figures mean nothing.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from bench.arguments import add_json, make_parser, positive, some_of
from bench.frame import lines_of, write_json
from bench.machine import now
from dragoman.errors import DataError
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK
from model.corpus import read_corpus

# Of a rehearsal: its figures mean nothing.
_LITTLE: Final[dict[str, Any]] = {
    "sentences": 6, "steps": 20, "most_slots": 2, "served_slots": 2, "load_s": 1.0, "segments": 40,
}  # fmt: skip


def main(argv: list[str]) -> int:
    """Run every part, print what it found as it comes, and write it.

    Returns:
        0; 1 when a part failed or found that something is not as it should be; 2, after one line on stderr, without
        a GPU or with a file that is no good; 130 after Ctrl-C.
    """
    try:
        from bench.gpu.parts import names
    except ModuleNotFoundError as error:
        print(f"python -m bench.gpu: needs the extras gpu and train: no module {error.name!r}", file=sys.stderr)
        return EXIT_BAD_ARGUMENTS
    parser = make_parser("python -m bench.gpu", __doc__)
    add, sizes = parser.add_argument, ("default", "base", "large")
    add("--device", choices=("cuda", "cpu"), default="cuda", help="(%(default)s)")
    add("--parts", type=some_of(names()), metavar="NAME,...", help="only these, and libraries (default: all)")
    add("--sizes", type=some_of(sizes), metavar="SIZE,...", help="of speed (default: all; on a CPU default)")
    add("--seconds", type=positive, default=600.0, metavar="S", help="of all parts together (%(default)g)")
    add("--checkpoint", type=Path, default=Path("models/en-de/checkpoint"), metavar="DIR", help="(%(default)s)")
    add("--data", type=Path, default=Path("tests/data/en-de.tsv"), metavar="FILE", help="pairs (%(default)s)")
    add("--work", type=Path, metavar="DIR", help="keep models and logs here, and use the models that are here")
    add_json(parser)
    arguments = parser.parse_args(argv)
    try:
        read_corpus(arguments.data)
    except DataError as error:
        parser.error(str(error))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no process is left behind
    with tempfile.TemporaryDirectory(prefix="dragoman-gpu-") as scratch:
        try:
            return _run(arguments, arguments.work or Path(scratch))
        except KeyboardInterrupt:
            print("interrupted; what was found before is written", file=sys.stderr)
            return EXIT_INTERRUPTED


def _run(arguments: argparse.Namespace, work: Path) -> int:
    from bench.gpu.parts import LIBRARIES, outcomes, parts
    from bench.gpu.task import Setup

    device = arguments.device
    setup = Setup(device, arguments.checkpoint, arguments.data, work, **(_LITTLE if device == "cpu" else {}))
    sizes = arguments.sizes or (("default",) if device == "cpu" else ("default", "base", "large"))
    work.mkdir(parents=True, exist_ok=True)
    report: dict[str, Any] = {"date": now(), "device": device, "parts": {}}
    failed = []
    for name, outcome in outcomes([LIBRARIES, *parts(sizes, arguments.parts)], setup, arguments.seconds):
        if missing := outcome.figures.get("missing"):
            print(f"python -m bench.gpu: {missing}", file=sys.stderr)
            return EXIT_BAD_ARGUMENTS
        report["parts"][name] = {"seconds": round(outcome.seconds, 1), "error": outcome.error, **outcome.figures}
        write_json(arguments.json, report)
        head = [f"## {name}", "", f"{outcome.verdict} ({outcome.seconds:.0f} s)", ""]
        print("\n".join([*head, *lines_of(outcome.figures), ""]), flush=True)
        if outcome.failed:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all parts ran, all as expected")
    return EXIT_FAILED if failed else EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
