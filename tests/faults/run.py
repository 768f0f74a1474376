"""Give faults to real servers under load, and count what becomes of every call: `make faults`.

Each fault has a server and a load of its own, so that each can be run alone with --only. Exit code 1 where a promise
was not kept, or a fault did not happen that should have; 2 for bad arguments.
"""

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.faults import report, trial
from tests.faults.fault import Fault
from tests.faults.load import Load
from tests.faults.registry import FAULTS
from tests.faults.server import Server
from tests.faults.truth import Truth

EXIT_KEPT, EXIT_BROKEN = 0, 1


def main(argv: list[str]) -> int:
    """Run what is asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.run", description=__doc__, allow_abbrev=False)
    names = [fault.name for fault in FAULTS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is left to chance (%(default)s)")
    parser.add_argument("--http", action="store_true", help="call over HTTP: the load, and the faults that have calls")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures to this file")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no server is left behind
    truth = Truth()
    findings = []
    for fault in FAULTS:
        if fault.name in (arguments.only or names):
            finding = trial.skip(fault) if fault.needs else _try(fault, truth, arguments.seed, arguments.http)
            findings.append(finding)
            what = "skipped: " + finding.skipped if finding.skipped else "; ".join(finding.broken) or "kept"
            print(f"{finding.duration_s:6.1f} s  {fault.name}: {what}", file=sys.stderr, flush=True)
    print(report.to_markdown(findings))
    if arguments.json:
        arguments.json.write_text(json.dumps(report.to_json(findings), indent=2) + "\n")
    return EXIT_BROKEN if any(finding.broken for finding in findings) else EXIT_KEPT


def _try(fault: Fault, truth: Truth, seed: int, over_http: bool) -> trial.Finding:
    with tempfile.TemporaryDirectory(prefix="dragoman-faults-") as folder:
        server = Server(Path(folder), over_http=over_http)
        try:
            server.start()
            load = Load(server, truth, seed)
            finding = trial.run(fault, server, load, truth, Random(f"{seed} {fault.name}"))
            load.stop()
            if (code := server.stop()) != 0:
                finding.broken.append(f"exit code 0 at the end: {code}")
        finally:
            server.close()
    return finding


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
