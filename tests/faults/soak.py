"""All faults mixed at random, for minutes, on two servers under load: `make soak`.

One server lives from the beginning to the end, and is given the faults that leave it alive: its memory and its file
descriptors must not grow. The other is given all of them. Exit code 1 where a promise was not kept, or a fault did not
happen that should have; 2 for bad arguments.
"""

import argparse
import json
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from tests.faults import report, trial
from tests.faults.fault import Fault
from tests.faults.load import Load
from tests.faults.registry import FAULTS
from tests.faults.server import Server
from tests.faults.truth import Truth

EXIT_KEPT, EXIT_BROKEN = 0, 1
_SAMPLE_PERIOD_S = 1.0
_WARM = 0.25  # of the time, in which memory may still grow
_MOST_GROWTH_MIB = 32.0
_MOST_MORE_DESCRIPTORS = 10  # of a moment: those of calls under way


class Sample(NamedTuple):
    """What the server that lives holds at one moment."""

    time_s: float
    resident_mib: float
    descriptors: float


class Lane(threading.Thread):
    """One server, its load, and one fault after the other, each as often as the others.

    Attributes:
        findings: of each fault given.
        error: what ended it before its time, if anything did.
    """

    def __init__(self, server: Server, load: Load, faults: Sequence[Fault], truth: Truth, seed: str, end_s: float):
        super().__init__(daemon=True)
        self._server, self._load, self._faults, self._truth = server, load, faults, truth
        self._random, self._end_s = Random(seed), end_s
        self.findings: list[trial.Finding] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            bag: list[Fault] = []
            while time.monotonic() < self._end_s:
                bag = bag or self._random.sample(self._faults, len(self._faults))
                finding = trial.run(bag.pop(), self._server, self._load, self._truth, self._random)
                self.findings.append(finding)
                what = "; ".join(finding.broken) or "kept"
                print(f"{finding.duration_s:6.1f} s  {self.name}: {finding.name}: {what}", file=sys.stderr, flush=True)
        except Exception as error:
            self.error = error


def main(argv: list[str]) -> int:
    """Run the soak and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=10.0, metavar="N", help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is left to chance (%(default)s)")
    parser.add_argument("--http", action="store_true", help="call over HTTP: the load, and the faults that have calls")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures, with all samples")
    arguments = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no server is left behind
    findings, samples, broken = soak(arguments.minutes * 60, arguments.seed, arguments.http)
    print(report.to_markdown(findings))
    print(report.memory_text(memory_of(samples)))
    print("\n".join(["", *(f"- {what}" for what in broken)]))
    if arguments.json:
        figures = {"findings": report.to_json(findings), "memory": memory_of(samples), "samples": samples}
        arguments.json.write_text(json.dumps(figures | {"broken": broken}, indent=2) + "\n")
    return EXIT_BROKEN if broken or any(finding.broken for finding in findings) else EXIT_KEPT


def soak(duration_s: float, seed: int, over_http: bool) -> tuple[list[trial.Finding], list[Sample], list[str]]:
    """Run all of it; gives what was found of each fault, the samples, and what is wrong beside that."""
    truth = Truth()
    possible = [fault for fault in FAULTS if not fault.needs]
    alive = [fault for fault in possible if not fault.restarts]
    with ExitStack() as stack:
        lanes = []
        end_s = time.monotonic() + duration_s
        for name, faults in (("lasting", alive), ("restarted", possible)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-soak-")))
            server = stack.enter_context(closing(Server(folder, over_http=over_http)))
            server.start()
            load = Load(server, truth, seed)
            stack.callback(load.stop)
            lane = Lane(server, load, faults, truth, f"{seed} {name}", end_s)
            lane.name = name
            lanes.append((lane, server))
        for lane, _ in lanes:
            lane.start()
        lasting = lanes[0][1]
        samples: list[Sample] = []
        while any(lane.is_alive() for lane, _ in lanes):
            samples.append(Sample(time.monotonic(), lasting.resident_mib(), lasting.descriptors()))
            time.sleep(_SAMPLE_PERIOD_S)
        broken = [f"lane {lane.name} ended by {lane.error!r}" for lane, _ in lanes if lane.error]
        if lasting.starts != 1:
            broken.append(f"the lasting server was started {lasting.starts} times")
        memory = memory_of(samples)
        if memory["grown_mib"] > _MOST_GROWTH_MIB:
            broken.append(f"memory grew by {memory['grown_mib']:.1f} MiB")
        if memory["descriptors_at_end"] > memory["descriptors_when_warm"] + _MOST_MORE_DESCRIPTORS:
            broken.append("descriptors were left open")
    found = [finding for lane, _ in lanes for finding in lane.findings]
    merged = [trial.merge(ones) for fault in possible if (ones := [one for one in found if one.name == fault.name])]
    return merged + [trial.skip(fault) for fault in FAULTS if fault.needs], samples, broken


def memory_of(samples: Sequence[Sample]) -> dict[str, float]:
    """How the memory and the descriptors of the lasting server went on, once it was warm."""
    rows = np.array(samples)
    warm = rows[int(len(rows) * _WARM) :]
    ends = max(1, len(warm) // 10)
    first, last = np.median(warm[:ends], axis=0), np.median(warm[-ends:], axis=0)
    slope = np.polyfit(warm[:, 0], warm[:, 1], 1)[0] if len(warm) > 1 else 0.0
    return {
        "resident_mib_when_warm": float(first[1]),
        "resident_mib_at_end": float(last[1]),
        "grown_mib": float(last[1] - first[1]),
        "mib_a_minute": float(slope * 60),
        "descriptors_when_warm": float(first[2]),
        "descriptors_at_end": float(last[2]),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
