"""The part of the comparison that needs servers: the highest rate of requests at which latency stays near idle."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count

from bench.compare.inprocess import Outcome, describe
from bench.compare.load import Answered, closed_load, open_load
from bench.compare.search import Trial, survivors
from bench.frame import in_turn
from bench.load.search import highest_rate
from bench.load.texts import serialize_requests
from bench.log import Log
from bench.peers.contender import Settings
from bench.peers.servers import Server
from bench.server_process import ServerError, running
from dragoman.v1 import translation_pb2

# Bound of the p95, from the scheduled arrival, as a multiple of the idle latency.
FACTOR = 5.0
UNIT = "requests/s"
# A p95 within this multiple of the bound is a near miss.
_NEAR = 2.0
# Clients at once that keep a server busy, to see where to begin.
_MANY = 32


@dataclass(frozen=True)
class Timing:
    """How long each load lasts, in seconds, and how fine the search is.

    Attributes:
        growth: from rung to rung of the sweep.
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
class Side:
    server: Server
    settings: Settings
    address: str
    requests: Sequence[bytes]
    timing: Timing
    log: Log
    idle_ms: float = 0.0
    held: float = 0.0
    seeds: Iterator[int] = field(default_factory=count)

    def measure_idle(self) -> None:
        load = closed_load(self.address, self.requests, 1, self.timing.warmup_s, self.timing.idle_s)
        if load.failed or load.p50_ms is None:
            raise ServerError(f"{self._name} answers one client with errors")
        self.idle_ms = load.p50_ms
        self.log(f"idle {self._name}: {self.idle_ms:.2f} ms")

    def holds(self, rate: float, bound_ms: float, seconds: float) -> bool:
        """Tell whether it holds a rate; a near miss has a second try, for something else may have taken the machine."""
        load = self._load(rate, bound_ms, seconds)
        if load.holds(_NEAR * bound_ms) and not load.holds(bound_ms):
            load = self._load(rate, bound_ms, seconds)
        if load.holds(bound_ms):
            self.held = max(self.held, rate)
        return load.holds(bound_ms)

    def _load(self, rate: float, bound_ms: float, seconds: float) -> Answered:
        if rate * seconds < 1:
            raise ServerError(f"{self._name} holds no rate at all: p95 is above {bound_ms:.1f} ms whatever is asked")
        load = open_load(self.address, self.requests, rate, self.timing.warmup_s, seconds, next(self.seeds))
        self.log(f"{self._name} at {rate:.0f}/s: {_describe(load, bound_ms)}")
        return load

    @property
    def _name(self) -> str:
        return f"{self.server.name} {describe(self.settings)}"


@dataclass
class _Search:
    """The highest rate of one side under one bound; each search begins where the one before ended."""

    side: Side
    bound_ms: float
    guess: float
    growth: float

    def __call__(self) -> float:
        timing = self.side.timing
        self.guess = highest_rate(
            lambda rate: self.side.holds(rate, self.bound_ms, timing.trial_s),
            self.guess,
            growth=self.growth,
            precision=timing.precision,
        )
        self.growth = 1 + 2 * timing.precision
        self.side.log(f"{self.side.server.name} holds {self.guess:.0f}/s with p95 <= {self.bound_ms:.1f} ms")
        return self.guess


@dataclass(frozen=True)
class Best:
    """What a sweep chose.

    Attributes:
        idle_ms: the lowest idle latency of all settings, so that none is let off for being slow when idle.
        trials: the settings tried, and the highest rate that each held before it dropped out.
    """

    settings: Settings
    idle_ms: float
    rate: float
    trials: list[Trial]


def sweep(server: Server, requests: Sequence[bytes], timing: Timing, log: Log) -> Best:
    """Find the settings that hold the highest rate: a ladder of rates, from which settings drop out."""
    with ExitStack() as stack:
        sides = [stack.enter_context(started(server, settings, requests, timing, log)) for settings in server.choices]
        for side in sides:
            side.measure_idle()
        idle_ms = min(side.idle_ms for side in sides)
        most = closed_load(sides[-1].address, requests, _MANY, timing.warmup_s, timing.idle_s).rate
        best, rate = survivors(
            sides,
            lambda side, rate: side.holds(rate, FACTOR * idle_ms, timing.sweep_s),
            rate=most / 2,
            growth=timing.growth,
        )
    return Best(best.settings, idle_ms, rate, [Trial(dict(side.settings), side.held) for side in sides])


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
    with ExitStack() as stack:
        ours, theirs = (
            stack.enter_context(started(server, chosen.settings, requests, timing, log))
            for server, chosen in zip(servers, best, strict=True)
        )
        our_bound, their_bound = (FACTOR * chosen.idle_ms for chosen in best)
        searches = [
            _Search(ours, our_bound, best[0].rate, timing.growth),
            _Search(theirs, their_bound, best[1].rate, timing.growth),
            _Search(theirs, our_bound, best[1].rate, timing.growth),
            _Search(ours, their_bound, best[0].rate, timing.growth),
        ]
        ours_at_ours, theirs_at_theirs, theirs_at_ours, ours_at_theirs = in_turn(searches, rounds)
    for name, bounds_ms, figures in (
        ("served, p95 below 5x own idle", (our_bound, their_bound), (ours_at_ours, theirs_at_theirs)),
        ("served, p95 below 5x our idle", (our_bound, our_bound), (ours_at_ours, theirs_at_ours)),
        ("served, p95 below 5x their idle", (their_bound, their_bound), (ours_at_theirs, theirs_at_theirs)),
    ):
        yield Outcome(
            model=model,
            part=name,
            unit=f"{UNIT}, p95 <= {bounds_ms[0]:.1f} and {bounds_ms[1]:.1f} ms",
            higher_is_better=True,
            names=(servers[0].name, servers[1].name),
            precisions=(servers[0].precision, servers[1].precision),
            settings=(best[0].settings, best[1].settings),
            sweeps=(best[0].trials, best[1].trials),
            figures=figures,
        )


def requests_of(texts: list[str], model: str, max_target_tokens: int | None) -> list[bytes]:
    """Make one request for each text, ready to send."""
    options = translation_pb2.TranslateOptions(max_target_tokens=max_target_tokens)
    return serialize_requests(texts, 1, translation_pb2.TranslateTextRequest(model=model, options=options))


@contextmanager
def started(server: Server, settings: Settings, requests: Sequence[bytes], timing: Timing, log: Log) -> Iterator[Side]:
    """Start a server of one choice of settings for the time of the block."""
    with running(server.command(settings)) as process:
        yield Side(server, settings, process.address, requests, timing, log)


def _describe(load: Answered, bound_ms: float) -> str:
    p95 = "no answer" if load.p95_ms is None else f"p95 {load.p95_ms:.1f} ms"
    return f"{p95} of {bound_ms:.1f}, {load.failed} failed: {'holds' if load.holds(bound_ms) else 'fails'}"
