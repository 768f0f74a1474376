"""The search for the highest rate, on servers of known capacity whose loads take no time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from bench.compare import served as compare_served
from bench.compare.load import Answered
from bench.compare.served import Timing, sweep
from bench.compare.served import compare_served as compare
from bench.peers.contender import Settings
from bench.peers.servers import Server
from bench.server_process import ServerError

TIMING = Timing()
IDLE_MS = {"ours": 4.0, "theirs": 6.0}


class World:
    """Servers whose address says how they answer; `p95_ms` may be planted for the next loads."""

    def __init__(self) -> None:
        self.loads: list[tuple[str, float]] = []
        self.planted: list[float] = []
        self.running: list[str] = []

    @contextmanager
    def run(self, command: Sequence[str]) -> Iterator[SimpleNamespace]:
        [address] = command
        self.running.append(address)
        yield SimpleNamespace(address=address)
        self.running.remove(address)

    def open_load(
        self, address: str, requests: Sequence[bytes], rate: float, warmup_s: float, seconds: float, seed: int
    ) -> Answered:
        assert address in self.running
        self.loads.append((address, rate))
        name, capacity = address.split()
        p95_ms = self.planted.pop(0) if self.planted else (2 if rate <= float(capacity) else 50) * IDLE_MS[name]
        return Answered(p95_ms / 2, p95_ms, rate, 0)

    def closed_load(
        self, address: str, requests: Sequence[bytes], clients: int, warmup_s: float, seconds: float
    ) -> Answered:
        name, capacity = address.split()
        return Answered(IDLE_MS[name], 2 * IDLE_MS[name], 2 * float(capacity), 0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(compare_served, "running", world.run)
    for name in ("open_load", "closed_load"):
        monkeypatch.setattr(compare_served, name, getattr(world, name))
    return world


def server(name: str, *capacities: float) -> Server:
    def command(settings: Settings) -> list[str]:
        return [f"{name} {settings['capacity']}"]

    return Server(name, "int8", [{"capacity": capacity} for capacity in capacities], command)


def test_a_sweep_chooses_who_holds_the_highest_rate(world: World) -> None:
    best = sweep(server("ours", 300.0, 200.0, 100.0), [b""], TIMING, lambda _: None)
    assert best.settings == {"capacity": 300.0}  # by far not the first rung, which is 100
    assert best.idle_ms == 4.0
    assert 300.0 / TIMING.growth < best.rate <= 300.0
    for trial in best.trials:
        capacity = trial.settings["capacity"]
        assert isinstance(capacity, float)
        assert capacity / TIMING.growth < trial.figure <= capacity
    assert world.running == []


def test_each_side_is_searched_in_turn_under_its_own_and_the_others_bound(world: World) -> None:
    said: list[str] = []
    outcomes = list(compare("m", (server("ours", 300.0), server("theirs", 100.0)), [b""], 2, TIMING, said.append))
    for outcome in outcomes:
        assert outcome.ours.figures == pytest.approx([300.0] * 2, rel=2 * TIMING.precision)
        assert outcome.theirs.figures == pytest.approx([100.0] * 2, rel=2 * TIMING.precision)
        assert outcome.ratio.median == pytest.approx(3.0, rel=2 * TIMING.precision)
    bounds = ["20.0 and 30.0 ms", "20.0 and 20.0 ms", "30.0 and 30.0 ms"]
    assert [bound in outcome.unit for outcome, bound in zip(outcomes, bounds, strict=True)] == [True] * 3
    held = [line.split()[0] for line in said if " holds " in line and " at " not in line]
    assert held[2:] == ["ours", "theirs", "theirs", "ours"] * 2  # behind the sweeps
    assert world.running == []


def test_a_near_miss_has_a_second_try_and_a_clear_one_has_none(world: World) -> None:
    bound_ms = 5 * IDLE_MS["ours"]
    for planted, loads, held in (([1.9], 2, True), ([1.9, 1.9], 2, False), ([2.1], 1, False), ([0.9], 1, True)):
        world.loads.clear()
        world.planted = [bound_ms * share for share in planted]
        with compare_served.started(server("ours", 9e9), {"capacity": 9e9}, [b""], TIMING, lambda _: None) as side:
            assert side.holds(10.0, bound_ms, 1.0) is held
        assert len(world.loads) == loads


def test_a_server_that_holds_nothing_ends_the_search(world: World) -> None:
    with pytest.raises(ServerError, match="holds no rate at all"):
        sweep(server("ours", 0.01), [b""], TIMING, lambda _: None)


def test_settings_that_hold_nothing_are_not_chosen(world: World) -> None:
    best = sweep(server("ours", 0.01, 100.0), [b""], TIMING, lambda _: None)
    assert best.settings == {"capacity": 100.0}
    assert best.trials[0].figure == 0
