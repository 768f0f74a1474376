"""The two in-process parts, with programs whose figures are part of their settings: nothing here is timed."""

import pytest

from bench.compare import inprocess as compare_inprocess
from bench.compare.inprocess import OFFLINE, SINGLE, Part, compare, sweep
from bench.compare.outcome import describe
from bench.peers.contender import Program, Settings
from bench.sentences import Sentences

SENTENCES = Sentences([[5, 2], [6, 7, 2], [8, 2]], [9, 10, 11])


class Echo:
    """Translates a sentence to itself, and writes down what was asked of it."""

    def __init__(self, settings: Settings, access_log: list[str]) -> None:
        self.settings = settings
        self.name = describe(settings)
        self.access_log = access_log
        access_log.append(f"open {self.name}")

    def translate(self, sentences: Sentences) -> list[list[int]]:
        self.access_log.append(f"translate {len(sentences)}")
        return [ids[:-1] for ids in sentences.sources]

    def close(self) -> None:
        self.access_log.append(f"close {self.name}")


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_inprocess, "PAUSE_S", 0.0)


@pytest.fixture
def access_log() -> list[str]:
    return []


def program(name: str, access_log: list[str], *figures: int) -> Program:
    choices = [{"side": name, "figure": figure} for figure in figures]
    return Program(name, "int8", choices, choices, lambda settings: Echo(settings, access_log))


def part(*, higher_is_better: bool) -> Part:
    def measure(contender: Echo, sentences: Sentences) -> float:
        contender.access_log.append(f"measure {contender.name} {len(sentences)}")
        return float(contender.settings["figure"])

    return Part("part", "x", higher_is_better, lambda program: program.offline, measure)


def test_a_sweep_tries_everything_and_leaves_nothing_open(access_log: list[str]) -> None:
    said: list[str] = []
    trials = sweep(part(higher_is_better=True), program("a", access_log, 3, 7), SENTENCES, said.append)
    assert [(trial.settings["figure"], trial.figure) for trial in trials] == [(3, 3.0), (7, 7.0)]
    opened = [line for line in access_log if not line.startswith("measure")]
    assert opened == ["open side=a figure=3", "close side=a figure=3", "open side=a figure=7", "close side=a figure=7"]
    assert len(said) == 2


@pytest.mark.parametrize(("higher_is_better", "ours", "theirs"), [(True, 7, 6), (False, 3, 2)])
def test_the_best_of_each_side_are_measured_in_turn(
    access_log: list[str], higher_is_better: bool, ours: int, theirs: int
) -> None:
    sides = program("a", access_log, 3, 7), program("b", access_log, 2, 6)
    outcome = compare(part(higher_is_better=higher_is_better), "m", sides, SENTENCES, 2, lambda _: None)
    for side, name, figure in ((outcome.ours, "a", ours), (outcome.theirs, "b", theirs)):
        assert (side.name, side.settings["figure"], side.figures) == (name, figure, [figure] * 2)
        assert len(side.sweep) == 2
    assert outcome.ratio.median == ours / theirs
    assert (outcome.model, outcome.higher_is_better) == ("m", higher_is_better)
    a, b = (f"measure side={side} figure={figure} 3" for side, figure in (("a", ours), ("b", theirs)))
    assert access_log[-6:-2] == [a, b, a, b]
    assert sum(line.startswith("open") for line in access_log) == sum(line.startswith("close") for line in access_log)


def test_offline_is_one_call_and_single_one_a_sentence(access_log: list[str]) -> None:
    contender = Echo({}, access_log)
    assert OFFLINE.measure(contender, SENTENCES) > 0
    assert SINGLE.measure(contender, SENTENCES) > 0
    assert access_log[1:] == ["translate 3", *["translate 1"] * 3]
    assert (OFFLINE.higher_is_better, SINGLE.higher_is_better) == (True, False)


def test_offline_tells_whether_both_did_the_same_work(access_log: list[str]) -> None:
    sides = program("a", access_log, 1), program("b", access_log, 1)
    outcome = compare(OFFLINE, "m", sides, SENTENCES, 1, lambda _: None)
    assert (outcome.sentences, outcome.equal, outcome.target_tokens) == (3, 3, [4, 4])
