"""The part of the comparison that needs servers: the highest rate of requests at which latency stays near idle."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from bench.compare.outcome import Outcome, Side, Trial, describe
from bench.frame import Log, in_turn
from bench.load.drive import put
from bench.load.figures import summarize
from bench.load.loops import ClosedLoop, OpenLoop, poisson_arrivals
from bench.load.ramp import search, why_not
from bench.peers.contender import Server, Settings
from bench.server_process import ServerError, running

# Bound of the p95, from the scheduled arrival, as a multiple of the idle latency.
FACTOR = 5.0
# A p95 within this multiple of the bound is a near miss.
_NEAR = 2.0
# Clients at once that keep a server busy, to see where to begin.
_MANY = 32
# Beyond any latency that could hold: such a request fails, and the trial with it.
_TIMEOUT_S = 10.0


class Plan(NamedTuple):
    """What all servers get: requests, in loads of some seconds each, and how fine the search is."""

    requests: Sequence[bytes]
    log: Log
    warmup_s: float = 0.6
    sweep_s: float = 2.0  # of a load that only helps to choose settings
    trial_s: float = 4.0
    growth: float = 1.25  # how far apart rates of the sweep are
    precision: float = 0.04  # of the highest rate, as a share of it


# Changes of a plan for a first impression.
QUICK = {"warmup_s": 0.4, "sweep_s": 1.2, "trial_s": 1.5, "growth": 1.4, "precision": 0.1}


class Loaded(NamedTuple):
    """A server that runs, and the loads that it gets."""

    name: str
    address: str
    plan: Plan
    seeds: Iterator[int]

    def busy(self, clients: int) -> dict[str, Any]:
        """Have clients send whenever they have an answer; returns the figures of a load, or raises a ServerError."""
        found = self._put(ClosedLoop(clients, self.plan.warmup_s, self.plan.warmup_s + self.plan.sweep_s, None))
        if found["errors"] or not found["completed"]:
            raise ServerError(f"{self.name} answers {clients} clients with errors")
        return found

    def highest_rate(self, bound_ms: float, guess: float, seconds: float, precision: float) -> float:
        """Find the highest rate at which the p95 is within a bound; raises a ServerError where there is none."""
        holds = partial(self.holds, bound_ms=bound_ms, seconds=seconds)
        return search(holds, guess, growth=self.plan.growth, precision=precision)

    def holds(self, rate: float, bound_ms: float, seconds: float) -> bool:
        """Tell whether it holds a rate; a near miss has a second try, for something else may have taken the machine."""
        if rate * seconds < 1:
            raise ServerError(f"{self.name} holds no rate at all: p95 is above {bound_ms:.1f} ms whatever is asked")
        for _ in range(2):
            found = self._put(OpenLoop(poisson_arrivals(rate, self.plan.warmup_s + seconds, next(self.seeds))))
            why = why_not(found, bound_ms)
            self.plan.log(f"{self.name} at {rate:.0f}/s: {why or 'holds'}")
            if why is None or why_not(found, _NEAR * bound_ms):
                break
        return why is None

    def _put(self, loop: OpenLoop | ClosedLoop) -> dict[str, Any]:
        plan = self.plan
        return summarize(put(self.address, plan.requests, loop, timeout_s=_TIMEOUT_S, warmup_s=plan.warmup_s))


class Best(NamedTuple):
    """What a sweep chose."""

    side: Side  # with the settings tried, and about the highest rate that each held; without figures
    rate: float
    idle_ms: float  # the lowest idle latency of all settings, so that none is let off for being slow when idle


def sweep(server: Server, plan: Plan) -> Best:
    """Find the settings that hold the highest rate, by a coarse search with each of them."""
    with ExitStack() as stack:
        tried = [stack.enter_context(started(server, settings, plan)) for settings in server.choices]
        idle_ms = min(each.busy(1)["p50_e2el_ms"] for each in tried)
        plan.log(f"{server.name} idle: {idle_ms:.2f} ms")
        guess = tried[-1].busy(_MANY)["request_throughput"] / 2
        rates = [_coarse_rate(each, FACTOR * idle_ms, guess) for each in tried]
    trials = [Trial(settings, rate) for settings, rate in zip(server.choices, rates, strict=True)]
    best = max(trials, key=lambda trial: trial.figure)
    if not best.figure:
        raise ServerError(f"{server.name} holds no rate at all, whatever its settings")
    return Best(Side(server.name, server.precision, best.settings, trials, ()), best.figure, idle_ms)


def _coarse_rate(loaded: Loaded, bound_ms: float, guess: float) -> float:
    """Find about the highest rate; 0 where it holds none."""
    try:
        return loaded.highest_rate(bound_ms, guess, loaded.plan.sweep_s, precision=loaded.plan.growth)
    except ServerError as error:
        loaded.plan.log(str(error))
        return 0.0


def compare_served(model: str, servers: tuple[Server, Server], rounds: int, plan: Plan) -> Iterator[Outcome]:
    """Sweep both servers, ours and theirs, then search the highest rate of each at its best, in turn.

    Yields:
        The outcomes under 5 times our idle latency and under 5 times theirs, each for both.
    """
    best = [sweep(server, plan) for server in servers]
    with ExitStack() as stack:
        running_ones = [
            stack.enter_context(started(server, chosen.side.settings, plan))
            for server, chosen in zip(servers, best, strict=True)
        ]
        for whose, idle_ms in zip(("our", "their"), [chosen.idle_ms for chosen in best], strict=True):
            bound_ms = FACTOR * idle_ms
            searches = [
                partial(loaded.highest_rate, bound_ms, chosen.rate, plan.trial_s, plan.precision)
                for loaded, chosen in zip(running_ones, best, strict=True)
            ]
            found = in_turn(searches, rounds)
            sides = [replace(chosen.side, figures=figures) for chosen, figures in zip(best, found, strict=True)]
            part = f"served, p95 below {bound_ms:.1f} ms ({FACTOR:g}x {whose} idle)"
            yield Outcome(model, part, "requests/s", True, sides[0], sides[1], len(plan.requests))


@contextmanager
def started(server: Server, settings: Settings, plan: Plan) -> Iterator[Loaded]:
    """Start a server under one choice of settings for the time of the block."""
    with running(server.command(settings)) as process:
        yield Loaded(f"{server.name} {describe(settings)}", process.address, plan, count())
