"""The part of the comparison that needs servers: the highest rate of requests at which latency stays near idle."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import NamedTuple

from bench.compare.load import Answered, closed_load, open_load
from bench.compare.outcome import Outcome, Side, Trial, describe
from bench.frame import in_turn
from bench.load.search import highest_rate
from bench.log import Log
from bench.peers.contender import Settings
from bench.peers.servers import Server
from bench.server_process import ServerError, running

# Bound of the p95, from the scheduled arrival, as a multiple of the idle latency.
FACTOR = 5.0
# A p95 within this multiple of the bound is a near miss.
_NEAR = 2.0
# Clients at once that keep a server busy, to see where to begin.
_MANY = 32


@dataclass(frozen=True)
class Timing:
    """How long each load lasts, in seconds, and how fine the search is.

    Attributes:
        growth: how far apart rates of the sweep are.
        precision: of the highest rate, as a share of it.
    """

    warmup_s: float = 0.6
    idle_s: float = 1.2
    sweep_s: float = 2.0
    trial_s: float = 4.0
    growth: float = 1.25
    precision: float = 0.04


QUICK = Timing(warmup_s=0.4, idle_s=0.8, sweep_s=1.2, trial_s=1.5, growth=1.4, precision=0.1)


@dataclass
class Loaded:
    """A server of one choice of settings, and the loads that it gets."""

    server: Server
    settings: Settings
    address: str
    requests: Sequence[bytes]
    timing: Timing
    log: Log
    seeds: Iterator[int] = field(default_factory=count)

    @property
    def _name(self) -> str:
        return f"{self.server.name} {describe(self.settings)}"

    def idle_ms(self) -> float:
        load = closed_load(self.address, self.requests, 1, self.timing.warmup_s, self.timing.idle_s)
        if load.failed or load.p50_ms is None:
            raise ServerError(f"{self._name} answers one client with errors")
        self.log(f"idle {self._name}: {load.p50_ms:.2f} ms")
        return load.p50_ms

    def busy_rate(self) -> float:
        return closed_load(self.address, self.requests, _MANY, self.timing.warmup_s, self.timing.idle_s).rate

    def highest_rate(self, bound_ms: float, seconds: float, guess: float, growth: float, precision: float) -> float:
        holds = partial(self.holds, bound_ms=bound_ms, seconds=seconds)
        rate = highest_rate(holds, guess, growth=growth, precision=precision)
        self.log(f"{self._name} holds {rate:.0f}/s with p95 <= {bound_ms:.1f} ms")
        return rate

    def coarse_rate(self, bound_ms: float, guess: float) -> float:
        """Find about the highest rate; 0 where it holds none."""
        timing = self.timing
        try:
            return self.highest_rate(bound_ms, timing.sweep_s, guess, timing.growth, timing.growth)
        except ServerError as error:
            self.log(str(error))
            return 0.0

    def holds(self, rate: float, bound_ms: float, seconds: float) -> bool:
        """Tell whether it holds a rate; a near miss has a second try, for something else may have taken the machine."""
        load = self._load(rate, bound_ms, seconds)
        if load.holds(_NEAR * bound_ms) and not load.holds(bound_ms):
            load = self._load(rate, bound_ms, seconds)
        return load.holds(bound_ms)

    def _load(self, rate: float, bound_ms: float, seconds: float) -> Answered:
        if rate * seconds < 1:
            raise ServerError(f"{self._name} holds no rate at all: p95 is above {bound_ms:.1f} ms whatever is asked")
        load = open_load(self.address, self.requests, rate, self.timing.warmup_s, seconds, next(self.seeds))
        p95 = "no answer" if load.p95_ms is None else f"p95 {load.p95_ms:.1f} ms"
        verdict = "holds" if load.holds(bound_ms) else "fails"
        self.log(f"{self._name} at {rate:.0f}/s: {p95} of {bound_ms:.1f}, {load.failed} failed: {verdict}")
        return load


@dataclass
class _Search:
    """The highest rate of one side under one bound; each search begins where the one before ended."""

    loaded: Loaded
    bound_ms: float
    rate: float
    growth: float

    def __call__(self) -> float:
        timing = self.loaded.timing
        self.rate = self.loaded.highest_rate(self.bound_ms, timing.trial_s, self.rate, self.growth, timing.precision)
        self.growth = 1 + 2 * timing.precision
        return self.rate


class Best(NamedTuple):
    """What a sweep chose.

    Attributes:
        idle_ms: the lowest idle latency of all settings, so that none is let off for being slow when idle.
        trials: the settings tried, and about the highest rate that each held.
    """

    settings: Settings
    rate: float
    idle_ms: float
    trials: Sequence[Trial]


def sweep(server: Server, requests: Sequence[bytes], timing: Timing, log: Log) -> Best:
    """Find the settings that hold the highest rate, by a coarse search with each of them."""
    with ExitStack() as stack:
        tried = [stack.enter_context(started(server, settings, requests, timing, log)) for settings in server.choices]
        idle_ms = min(each.idle_ms() for each in tried)
        guess = tried[-1].busy_rate() / 2
        trials = [Trial(each.settings, each.coarse_rate(FACTOR * idle_ms, guess)) for each in tried]
    best = max(trials, key=lambda trial: trial.figure)
    if not best.figure:
        raise ServerError(f"{server.name} holds no rate at all, whatever its settings")
    return Best(best.settings, best.figure, idle_ms, trials)


def compare_served(
    model: str,
    servers: tuple[Server, Server],
    requests: Sequence[bytes],
    rounds: int,
    timing: Timing,
    log: Log,
) -> Iterator[Outcome]:
    """Sweep both servers, then search the highest rate of each at its best, in turn.

    Args:
        servers: ours, then theirs.

    Yields:
        The outcomes under 5 times each side's own idle latency, which is kind to who is slow when idle, under 5 times
        ours for both, and under 5 times theirs for both.
    """
    best = [sweep(server, requests, timing, log) for server in servers]
    our_ms, their_ms = (FACTOR * chosen.idle_ms for chosen in best)
    with ExitStack() as stack:
        loaded = [
            stack.enter_context(started(server, chosen.settings, requests, timing, log))
            for server, chosen in zip(servers, best, strict=True)
        ]
        pairs = [(0, our_ms), (1, their_ms), (1, our_ms), (0, their_ms)]
        searches = [_Search(loaded[side], bound_ms, best[side].rate, timing.growth) for side, bound_ms in pairs]
        found = in_turn(searches, rounds)
    for name, bounds_ms, ours, theirs in (
        ("served, p95 below 5x own idle", (our_ms, their_ms), found[0], found[1]),
        ("served, p95 below 5x our idle", (our_ms, our_ms), found[0], found[2]),
        ("served, p95 below 5x their idle", (their_ms, their_ms), found[3], found[1]),
    ):
        unit = f"requests/s, p95 <= {bounds_ms[0]:.1f} and {bounds_ms[1]:.1f} ms"
        our_side, their_side = (
            Side(server.name, server.precision, chosen.settings, chosen.trials, figures)
            for server, chosen, figures in zip(servers, best, (ours, theirs), strict=True)
        )
        yield Outcome(model, name, unit, True, our_side, their_side)


@contextmanager
def started(
    server: Server, settings: Settings, requests: Sequence[bytes], timing: Timing, log: Log
) -> Iterator[Loaded]:
    """Start a server of one choice of settings for the time of the block."""
    with running(server.command(settings)) as process:
        yield Loaded(server, settings, process.address, requests, timing, log)
