"""The course of a storm: how much the server can do, how fast it is below that, what it does above, how it recovers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.load.drive import Watch, put
from bench.load.figures import latencies_ms, summarize
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.samples import Outcome, Samples, Table
from bench.load.texts import serialize_requests
from bench.load.timeline import timeline
from bench.log import Log
from bench.memory import Resident, share_grown, watch
from bench.overload.cores import Cores, apart
from bench.overload.phases import Phase, answers_per_second, arrivals, due_in, in_a_row, p95_ms, recovery_s
from bench.overload.targets import Figures
from bench.server_process import NOTHING_FREE, Running, ServerError, english_model, running, serve_command
from dragoman import Client
from dragoman.v1 import translation_pb2

STEADY_SHARE = 0.8
_DELAY_FLAG = "--max-delay-s"
_WARMUP_S, _LEAD_S, _AFTER_S = 2.0, 5.0, 10.0
# Texts that are under way when as many clients as keep the server busy wait for their answers.
_BUSY_TEXTS = 256
_BIN_S = 1.0


@dataclass(frozen=True)
class Plan:
    """What is run.

    Attributes:
        factor: the rate of the storm, as a multiple of the sustainable one.
        delay_share: how long an interactive request may wait for others, as a share of the p95 of the steady load.
    """

    texts: Sequence[str]
    texts_per_request: int
    factor: float
    peak_s: float
    steady_s: float
    storm_s: float
    delay_share: float
    timeout_s: float
    seed: int
    serve: Sequence[str]


@dataclass(frozen=True)
class Storm:
    figures: Figures
    report: dict[str, Any]


@dataclass(frozen=True)
class _Seen:
    """What was seen: the storm is the second of the phases."""

    cores: Cores
    peaks: tuple[float, float]
    steady: Table
    steady_p95_ms: float
    samples: Samples
    phases: Sequence[Phase]
    resident: Sequence[Resident]


def drive(plan: Plan, log: Log) -> Storm:
    seen = _watched(plan, log)
    figures = _figures(seen)
    return Storm(figures, {**figures._asdict(), **_described(plan, seen)})


def _watched(plan: Plan, log: Log) -> _Seen:
    command = serve_command("--log-format", "json", *NOTHING_FREE, *plan.serve)
    with apart() as cores, running(command, cores.server) as unbounded:
        log(f"cores: {_listed(cores.server)} of the servers, {_listed(cores.generator)} of the generator")
        requests = _requests(plan, unbounded.address)
        before = _peak(plan, unbounded, requests)
        log(_sustainable(plan, before))
        steady = _steady(plan, unbounded, requests, STEADY_SHARE * before)
        steady_ms = p95_ms(steady)
        if steady_ms is None:
            raise ServerError("a server answered nothing at 80 % of what it had just done")
        log(f"at {STEADY_SHARE:.0%} of it: p95 {steady_ms:.1f} ms")
        command += _delay_flags(plan, steady_ms)
        with running(command, cores.server) as bounded:
            log(f"storm of {plan.factor:g} times that for {plan.storm_s:g} s: {' '.join(command[3:])}")
            samples, phases, resident = _storm(plan, bounded, requests, before)
        after = _peak(plan, unbounded, requests)
        log(f"once more, {_sustainable(plan, after)}")
    return _Seen(cores, (before, after), steady, steady_ms, samples, phases, resident)


def _figures(seen: _Seen) -> Figures:
    table, storm = seen.samples.table(), seen.phases[1]
    return Figures(
        peak=sum(seen.peaks) / len(seen.peaks),
        steady_p95_ms=seen.steady_p95_ms,
        storm_goodput=answers_per_second(table, storm),
        storm_p95_ms=p95_ms(due_in(table, storm)),
        requests=len(table.due_s),
        neither=int((~table.answered & ~table.with_outcome(Outcome.REJECTED)).sum()),
        recovery_s=recovery_s(table, storm.to_s, seen.steady_p95_ms),
        memory_growth=share_grown(seen.resident, storm.from_s, storm.to_s),
    )


def _described(plan: Plan, seen: _Seen) -> dict[str, Any]:
    table = seen.samples.table()
    in_storm = due_in(table, seen.phases[1])
    found = summarize(seen.samples)
    in_time = (latencies_ms(in_storm) <= 2 * seen.steady_p95_ms).sum()
    return {
        "cores": seen.cores._asdict(),
        "texts_per_request": plan.texts_per_request,
        "peaks": seen.peaks,
        "steady_p50_ms": float(np.median(latencies_ms(seen.steady))),
        "storm_p50_ms": float(np.median(latencies_ms(in_storm))) if in_storm.answered.any() else None,
        "storm_answers_within_twice_steady_p95": float(in_time) / plan.storm_s,
        "outcomes": {outcome.value: int(table.with_outcome(outcome).sum()) for outcome in Outcome},
        **{name: found[name] for name in ("errors_by_code", "errors", "late_sends", "generator_limited")},
        **{name: found[name] for name in ("p95_send_delay_ms", "max_send_delay_ms")},
        "phases": [vars(phase) for phase in seen.phases],
        "timeline": timeline(table, _BIN_S),
        "resident": [list(moment) for moment in seen.resident],
    }


def _sustainable(plan: Plan, peak: float) -> str:
    return f"sustainable: {peak:.1f} requests/s, {peak * plan.texts_per_request:.0f} texts/s"


def _listed(cores: Sequence[int]) -> str:
    return ", ".join(map(str, cores))


def _requests(plan: Plan, address: str) -> list[bytes]:
    with Client(address) as client:
        template = translation_pb2.TranslateTextRequest(model=english_model(client))
    return serialize_requests(list(plan.texts), plan.texts_per_request, template)


def _busy(plan: Plan, seconds: float) -> ClosedLoop:
    """Make clients that keep every slot of the server busy."""
    return ClosedLoop(max(4, math.ceil(_BUSY_TEXTS / plan.texts_per_request)), 0.0, seconds, None)


def _peak(plan: Plan, server: Running, requests: Sequence[bytes]) -> float:
    _put(plan, server, requests, _busy(plan, _WARMUP_S))
    [phase] = in_a_row([("busy", 0.0, plan.peak_s)])
    peak = answers_per_second(_put(plan, server, requests, _busy(plan, plan.peak_s)).table(), phase)
    if not peak:
        raise ServerError("a server answered nothing")
    return peak


def _steady(plan: Plan, server: Running, requests: Sequence[bytes], rate: float) -> Table:
    phases = in_a_row([("lead", rate, _WARMUP_S), ("steady", rate, plan.steady_s)])
    table = _put(plan, server, requests, OpenLoop(arrivals(phases, plan.seed))).table()
    return due_in(table, phases[1])


def _delay_flags(plan: Plan, steady_ms: float) -> list[str]:
    """Say how long a request may wait, where the arguments do not."""
    return [] if _DELAY_FLAG in plan.serve else [_DELAY_FLAG, f"{plan.delay_share * steady_ms / 1e3:.4f}"]


def _storm(
    plan: Plan, server: Running, requests: Sequence[bytes], peak: float
) -> tuple[Samples, list[Phase], list[Resident]]:
    """Run three phases, the storm in their middle, and watch the memory of the server."""
    _put(plan, server, requests, _busy(plan, _WARMUP_S))
    below = STEADY_SHARE * peak
    phases = in_a_row(
        [("before", below, _LEAD_S), ("storm", plan.factor * peak, plan.storm_s), ("after", below, _AFTER_S)]
    )
    resident: list[Resident] = []
    samples = _put(plan, server, requests, OpenLoop(arrivals(phases, plan.seed + len(phases))), resident)
    return samples, phases, resident


def _put(
    plan: Plan,
    server: Running,
    requests: Sequence[bytes],
    loop: OpenLoop | ClosedLoop,
    seen: list[Resident] | None = None,
) -> Samples:
    """Put a load on a server, and watch its memory meanwhile where that is wanted."""
    watches: list[Watch] = []
    if seen is not None:
        watches.append(lambda generator: watch(server.process.pid, generator.now_s, seen))
    return put([server.address], requests, loop, timeout_s=plan.timeout_s, watches=watches)
