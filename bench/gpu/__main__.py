"""Dragoman on an NVIDIA GPU: all that is to be checked and measured, in one call. It has not been run on one yet.

    python -m bench.gpu [--sizes default,base,large] [--work DIR] [--json FILE] [--markdown FILE]

Needs the extras `gpu` (in place of `cpu`), `train` and `peers`; a part whose package is missing fails alone. Each part
is a process of its own with its share of the time, 8.5 minutes in all. One that fails, crashes or hangs does not keep
the others from running, and the files are written anew after each. What there is no time for is left out and named. In
order:

    libraries   the GPU, its driver, CUDA's libraries
    encoder     a short source alone and beside a long one, with each kernel of attention
    kernels     which kernels onnxruntime chooses, and on which device each operator runs
    traces      all kernels of the GPU, by torch's profiler
    graphs      the same tokens with CUDA graphs and without, up to the last position of the caches
    nan         the same tokens with caches full of NaN at first
    placement   the CUDA provider is first, and nothing is copied between devices
    parity      tokens of the fp16 bundle on the GPU beside those of the fp32 bundle on the CPU: equal sentences, BLEU
    bits        the logits of one sentence in the company of 0, 1, 3, ... others
    speed       tokens a second at 1, 2, 4, ... 1024 slots, beside CTranslate2 in fp16 and beside the floor; each size
    memory      of the device over 100,000 segments
    reload      `dragoman serve --device cuda` under load while its model is replaced, every answer compared
    load-test   the same without reloads

The floor is what a step must read, weights, keys and values, over the measured bandwidth of a copy. `--device cpu`
rehearses all of it without a GPU, with the engine's buffers where a GPU would have them (except in the last two parts,
where the server does what it does on a CPU) and with small numbers; its figures mean nothing.
"""

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.arguments import count, make_parser, output_file, positive, some_of
from bench.gpu.parts import names, parts
from bench.machine import now
from dragoman.arguments import Parser
from dragoman.exit_codes import EXIT_BAD_ARGUMENTS, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK

_SIZES: Final = ("default", "base", "large")
# Of cuda and of cpu: the figures of a rehearsal mean nothing, so it does little.
_DEFAULTS: Final = {
    "cuda": {
        "sizes": _SIZES, "sentences": 500, "steps": 200, "most_slots": 1024, "served_slots": 256, "load_s": 15.0,
        "segments": 100_000,
    },
    "cpu": {
        "sizes": ("default",), "sentences": 6, "steps": 20, "most_slots": 2, "served_slots": 2, "load_s": 1.0,
        "segments": 40,
    },
}  # fmt: skip


def main(argv: list[str]) -> int:
    """Run every part, print what it found as it comes, and write it.

    Returns:
        0; 1 when a part failed or found that something is not as it should be; 2, after one line on stderr, without
        a GPU or with a file that is no good; 130 after Ctrl-C.
    """
    try:
        arguments = build_parser().parse_args(argv)
        for name, value in _DEFAULTS[arguments.device].items():
            if getattr(arguments, name) is None:
                setattr(arguments, name, value)
        with tempfile.TemporaryDirectory(prefix="dragoman-gpu-") as scratch:
            return _run(arguments, arguments.work or Path(scratch))
    except ModuleNotFoundError as error:
        return _refuse(f"needs the extras gpu and train: no module {error.name!r}")
    except KeyboardInterrupt:
        print("interrupted; what was found before is written", file=sys.stderr)
        return EXIT_INTERRUPTED


def _run(arguments: argparse.Namespace, work: Path) -> int:
    from bench.gpu.report import Report, section
    from bench.gpu.run import MissingDeviceError, run
    from bench.gpu.setup import Setup
    from bench.load.texts import DataFileError, read_pairs

    fields = ("device", "checkpoint", "data", "sentences", "steps", "most_slots", "served_slots", "load_s", "segments")
    setup = Setup(work=work, **{name: getattr(arguments, name) for name in fields})
    try:
        read_pairs(setup.data, setup.sentences)
    except DataFileError as error:
        return _refuse(str(error))
    work.mkdir(parents=True, exist_ok=True)
    setup.write(work / "setup.json")
    report = Report({"date": now(), "device": setup.device}, arguments.json, arguments.markdown)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no process is left behind
    chosen = parts(arguments.sizes, arguments.parts)
    try:
        run(chosen, work / "setup.json", arguments.seconds, report, lambda *found: print(section(*found), flush=True))
    except MissingDeviceError as error:
        return _refuse(str(error))
    print(f"failed: {', '.join(report.failed)}" if report.failed else "all parts ran, all as expected")
    return EXIT_FAILED if report.failed else EXIT_OK


def _refuse(reason: str) -> int:
    print(f"python -m bench.gpu: {reason}", file=sys.stderr)
    return EXIT_BAD_ARGUMENTS


def build_parser() -> Parser:
    parser = make_parser("python -m bench.gpu", __doc__)
    add = parser.add_argument
    add("--device", choices=("cuda", "cpu"), default="cuda", help="(%(default)s)")
    add("--parts", type=some_of(names()), metavar="NAME,...", help="only these, and libraries (default: all)")
    add("--sizes", type=some_of(_SIZES), metavar="SIZE,...", help=f"of the models of speed ({_defaults('sizes')})")
    add("--seconds", type=positive, default=510.0, metavar="S", help="of all parts together (%(default)g)")
    add("--checkpoint", type=Path, default=Path("models/en-de/checkpoint"), metavar="DIR", help="(%(default)s)")
    add("--data", type=Path, default=Path("tests/data/en-de.tsv"), metavar="FILE", help="pairs (%(default)s)")
    add("--sentences", type=count, metavar="N", help=f"the first N pairs ({_defaults('sentences')})")
    add("--steps", type=count, metavar="N", help=f"with and without CUDA graphs ({_defaults('steps')})")
    add("--most-slots", type=count, metavar="N", help=f"({_defaults('most_slots')})")
    add("--served-slots", type=count, metavar="N", help=f"of the servers under load ({_defaults('served_slots')})")
    add("--load-s", type=positive, metavar="S", help=f"seconds of each load ({_defaults('load_s')})")
    add("--segments", type=count, metavar="N", help=f"while memory is watched ({_defaults('segments')})")
    add("--work", type=Path, metavar="DIR", help="keep models and logs here, and use the models that are here")
    add("--json", type=output_file, metavar="FILE", help="write all figures to this file")
    add("--markdown", type=output_file, metavar="FILE", help="write tables to this file")
    return parser


def _defaults(name: str) -> str:
    cuda, cpu = (
        ",".join(value) if isinstance(value := _DEFAULTS[device][name], tuple) else value for device in ("cuda", "cpu")
    )
    return f"{cuda}; on a CPU {cpu}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
