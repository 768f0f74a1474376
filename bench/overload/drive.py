"""The course of a storm: how much the server can do, how fast it is below that, what it does above, how it recovers."""

import argparse
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.frame import Log
from bench.load.drive import Watch, put
from bench.load.figures import summarize
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.samples import Outcome, Samples
from bench.load.texts import read_data_file, serialize_requests
from bench.load.timeline import timeline
from bench.memory import Resident, share_grown, watch
from bench.overload.phases import Phase, answers_per_second, arrivals, due_in, in_a_row, p95_ms, recovery_s
from bench.overload.targets import Figures, check
from bench.server_process import NOTHING_FREE, Running, ServerError, english_model, running, serve_command
from dragoman import Client
from dragoman.v1.translation_pb2 import TranslateTextRequest

STEADY_SHARE = 0.8
_DELAY_FLAG = "--max-delay-s"
_WARMUP_S, _LEAD_S, _AFTER_S = 2.0, 5.0, 10.0
# Texts that are under way when as many clients as keep the server busy wait for their answers.
_BUSY_TEXTS = 256
_BIN_S = 1.0
# What is known of the generator, and of requests without an answer.
_OF_SAMPLES = ("errors_by_code", "errors", "late_sends", "generator_limited", "p95_send_delay_ms", "max_send_delay_ms")


@contextmanager
def apart() -> Iterator[list[int]]:
    """Keep this thread, and those that it starts, to the last core, for the time of the block.

    The block gets the other cores, for the servers; where there is only one, that one.
    """
    allowed = os.sched_getaffinity(0)
    cores = sorted(allowed)
    os.sched_setaffinity(0, cores[-1:])
    try:
        yield cores[:-1] or cores
    finally:
        os.sched_setaffinity(0, allowed)


def drive(arguments: argparse.Namespace, log: Log) -> dict[str, Any]:
    """Run what the arguments say; returns the figures by which a storm is judged, and with them all that was seen."""
    command = serve_command("--log-format", "json", *NOTHING_FREE, *arguments.serve)
    with apart() as cores, running(command, cores) as unbounded:
        loads = _Loads(arguments, unbounded)
        before = loads.peak(unbounded)
        log(f"sustainable: {loads.told(before)}")
        steady_ms = loads.steady_p95_ms(unbounded, STEADY_SHARE * before)
        log(f"at {STEADY_SHARE:.0%} of it: p95 {steady_ms:.1f} ms")
        if _DELAY_FLAG not in arguments.serve:
            command += [_DELAY_FLAG, f"{arguments.delay_share * steady_ms / 1e3:.4f}"]
        with running(command, cores) as bounded:
            log(f"storm of {arguments.factor:g} times that for {arguments.storm_s:g} s: {' '.join(command[3:])}")
            samples, phases, resident = loads.storm(bounded, before)
        after = loads.peak(unbounded)
        log(f"once more, sustainable: {loads.told(after)}")
    table, found, storm = samples.table(), summarize(samples), phases[1]
    figures = Figures(
        peak=(before + after) / 2,
        steady_p95_ms=steady_ms,
        storm_goodput=answers_per_second(table, storm),
        storm_p95_ms=p95_ms(due_in(table, storm)),
        requests=len(table.due_s),
        neither=int((~table.answered & ~table.with_outcome(Outcome.REJECTED)).sum()),
        recovery_s=recovery_s(table, storm.to_s, steady_ms),
        memory_growth=share_grown(resident, storm.from_s, storm.to_s),
    )
    return {
        **figures._asdict(),
        "targets": check(figures),
        "peaks": (before, after),
        "outcomes": {outcome.value: int(table.with_outcome(outcome).sum()) for outcome in Outcome},
        **{name: found[name] for name in _OF_SAMPLES},
        "phases": [vars(phase) for phase in phases],
        "timeline": timeline(table, _BIN_S),
        "resident": [list(moment) for moment in resident],
    }


class _Loads:
    """Loads of the same requests, on one server after the other."""

    def __init__(self, arguments: argparse.Namespace, server: Running) -> None:
        self._arguments = arguments
        with Client(server.address) as client:
            model = english_model(client)
        texts, template = read_data_file(arguments.data).texts, TranslateTextRequest(model=model)
        self._requests = serialize_requests(texts, arguments.texts_per_request, template)

    def told(self, rate: float) -> str:
        return f"{rate:.1f} requests/s, {rate * self._arguments.texts_per_request:.0f} texts/s"

    def peak(self, server: Running) -> float:
        self._keep_busy(server, _WARMUP_S)
        [phase] = in_a_row([("busy", 0.0, self._arguments.peak_s)])
        peak = answers_per_second(self._keep_busy(server, phase.duration_s).table(), phase)
        if not peak:
            raise ServerError("a server answered nothing")
        return peak

    def steady_p95_ms(self, server: Running, rate: float) -> float:
        phases = in_a_row([("lead", rate, _WARMUP_S), ("steady", rate, self._arguments.steady_s)])
        table = self._put(server, OpenLoop(arrivals(phases, self._arguments.seed))).table()
        if (found := p95_ms(due_in(table, phases[1]))) is None:
            raise ServerError("a server answered nothing at 80 % of what it had just done")
        return found

    def storm(self, server: Running, peak: float) -> tuple[Samples, list[Phase], list[Resident]]:
        """Run three phases, the storm in their middle, and watch the memory of the server."""
        self._keep_busy(server, _WARMUP_S)
        below, above = STEADY_SHARE * peak, self._arguments.factor * peak
        phases = in_a_row(
            [("before", below, _LEAD_S), ("storm", above, self._arguments.storm_s), ("after", below, _AFTER_S)]
        )
        resident: list[Resident] = []
        loop = OpenLoop(arrivals(phases, self._arguments.seed + len(phases)))
        samples = self._put(server, loop, lambda generator: watch(server.process.pid, generator.now_s, resident))
        return samples, phases, resident

    def _keep_busy(self, server: Running, seconds: float) -> Samples:
        """Let clients wait for their answers, as many as keep every slot of the server busy."""
        clients = max(4, math.ceil(_BUSY_TEXTS / self._arguments.texts_per_request))
        return self._put(server, ClosedLoop(clients, 0.0, seconds, None))

    def _put(self, server: Running, loop: OpenLoop | ClosedLoop, *watches: Watch) -> Samples:
        return put(server.address, self._requests, loop, timeout_s=self._arguments.timeout_s, watches=watches)
