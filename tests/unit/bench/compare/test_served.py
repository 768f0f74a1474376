"""The search for the highest rate, on servers of known capacity whose loads take no time."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from bench.compare import served
from bench.compare.served import Plan, compare_served, sweep
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.samples import Ending, Samples
from bench.peers.contender import Server, Settings
from bench.server_process import ServerError

IDLE_MS = {"ours": 4.0, "theirs": 6.0}
PLAN = Plan([b""], lambda _: None)


class World:
    """Servers whose address says how they answer; `p95_ms` may be planted for the next loads."""

    def __init__(self) -> None:
        self.loads = 0
        self.planted: list[float] = []
        self.running: list[str] = []
        self.fails = False

    @contextmanager
    def run(self, command: Sequence[str]) -> Iterator[SimpleNamespace]:
        [address] = command
        self.running.append(address)
        yield SimpleNamespace(address=address)
        self.running.remove(address)

    def put(self, address: str, requests: object, loop: OpenLoop | ClosedLoop, **_: object) -> Samples:
        assert address in self.running
        name, capacity = address.split()
        samples = Samples()
        if isinstance(loop, ClosedLoop):
            for number in range(max(1, int(4 * float(capacity)))):  # for two seconds, twice what it holds
                due_s = 2 - IDLE_MS[name] / 1e3 - number / 1e6
                samples.add(due_s, due_s, due_s + IDLE_MS[name] / 1e3)
        else:
            self.loads += 1
            rate = len(loop.arrivals_s)
            usual_ms = (2 if rate <= float(capacity) else 50) * IDLE_MS[name]
            latency_ms = self.planted.pop(0) if self.planted else usual_ms
            samples.add(0.0, 0.0, latency_ms / 1e3)
        if self.fails:
            samples.add(0.0, 0.0, 0.1, Ending("INTERNAL", "planted"))
        return samples


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    def arrivals(rate: float, duration_s: float, seed: int) -> Any:
        return range(math.ceil(rate))  # as many as are due in a second

    monkeypatch.setattr(served, "running", world.run)
    monkeypatch.setattr(served, "put", world.put)
    monkeypatch.setattr(served, "poisson_arrivals", arrivals)
    return world


def server(name: str, *capacities: float) -> Server:
    def command(settings: Settings) -> list[str]:
        return [f"{name} {settings['capacity']}"]

    return Server(name, "int8", [{"capacity": capacity} for capacity in capacities], command)


def test_a_sweep_chooses_who_holds_the_highest_rate(world: World) -> None:
    best = sweep(server("ours", 300.0, 200.0, 100.0), PLAN)
    assert best.side.settings == {"capacity": 300.0}  # by far not the first rung, which is 100
    assert best.idle_ms == pytest.approx(4.0)
    assert 300.0 / PLAN.growth < best.rate <= 300.0
    for trial in best.side.sweep:
        capacity = trial.settings["capacity"]
        assert capacity / PLAN.growth < trial.figure <= capacity
    assert world.running == []


def test_each_side_is_searched_in_turn_under_its_own_and_the_others_bound(world: World) -> None:
    outcomes = list(compare_served("m", (server("ours", 300.0), server("theirs", 100.0)), 2, PLAN))
    for outcome in outcomes:
        assert outcome.ours.figures == pytest.approx([300.0] * 2, rel=2 * PLAN.precision)
        assert outcome.theirs.figures == pytest.approx([100.0] * 2, rel=2 * PLAN.precision)
        assert outcome.ratio.median == pytest.approx(3.0, rel=2 * PLAN.precision)
    assert [outcome.part for outcome in outcomes] == [
        "served, p95 below 20.0 ms (5x our idle)",
        "served, p95 below 30.0 ms (5x their idle)",
    ]
    assert world.running == []


def test_a_near_miss_has_a_second_try_and_a_clear_one_has_none(world: World) -> None:
    bound_ms = 5 * IDLE_MS["ours"]
    for planted, loads, held in (([1.9], 2, True), ([1.9, 1.9], 2, False), ([2.1], 1, False), ([0.9], 1, True)):
        world.loads = 0
        world.planted = [bound_ms * share for share in planted]
        with served.started(server("ours", 9e9), {"capacity": 9e9}, PLAN) as side:
            assert side.holds(10.0, bound_ms, 1.0) is held
        assert world.loads == loads


def test_a_load_with_an_error_does_not_hold(world: World) -> None:
    world.fails = True
    with served.started(server("ours", 100.0), {"capacity": 100.0}, PLAN) as side:
        assert not side.holds(10.0, 20.0, 1.0)
        with pytest.raises(ServerError, match="answers 1 clients with errors"):
            side.busy(1)


def test_a_server_that_holds_nothing_ends_the_search(world: World) -> None:
    with pytest.raises(ServerError, match="holds no rate at all"):
        sweep(server("ours", 0.3), PLAN)


def test_settings_that_hold_nothing_are_not_chosen(world: World) -> None:
    best = sweep(server("ours", 0.01, 100.0), PLAN)
    assert best.side.settings == {"capacity": 100.0}
    assert best.side.sweep[0].figure == 0
