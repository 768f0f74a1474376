import time
from pathlib import Path

import pytest

from bench.gpu.process import Function, Outcome, run
from bench.gpu.task import Setup
from tests.unit.bench.gpu import behaviours


def outcome_of(function: Function, setup: Setup, seconds: float = 60.0) -> Outcome:
    return run(f"the {function.__name__}", function, setup, "base", seconds)


def test_a_part_is_given_its_setup_and_its_figures_come_back(setup: Setup) -> None:
    outcome = outcome_of(behaviours.succeeds, setup)
    assert (outcome.error, outcome.figures) == (None, {"size": "base", "slots": 2, "in_time": True})
    assert outcome.seconds > 0


def test_a_part_that_fails_is_one_line_and_keeps_what_it_has(setup: Setup) -> None:
    outcome = outcome_of(behaviours.fails, setup)
    assert outcome.error == "RuntimeError: no memory"
    assert outcome.figures == {"rows": [{"slots": 1}]}
    assert "Traceback" in (setup.work / "the-fails.log").read_text()


def test_a_part_that_crashes_keeps_what_it_has(setup: Setup) -> None:
    outcome = outcome_of(behaviours.crashes, setup)
    assert outcome.error == "ended by SIGSEGV: about to crash"
    assert outcome.figures == {"rows": [{"slots": 1}]}


def test_a_part_that_leaves_without_a_word_is_an_error(setup: Setup) -> None:
    outcome = outcome_of(behaviours.exits, setup)
    assert outcome == Outcome(outcome.seconds, "ended with exit code 3: it printed nothing", {})


def test_a_part_that_hangs_is_ended_with_its_processes_and_keeps_what_it_has(setup: Setup) -> None:
    outcome = outcome_of(behaviours.hangs, setup, 5.0)
    assert outcome.error == "was ended after 5 s"
    deadline_s = time.monotonic() + 60.0
    while runs(outcome.figures["sleeper"]):  # killed, and about to be gone
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def runs(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    ("error", "figures", "verdict", "failed"),
    [
        (None, {"checks": {"the same tokens": True}}, "as expected", False),
        (None, {"checks": {"the same tokens": False, "no copies": True}}, "NOT SO: the same tokens", True),
        ("ended by SIGSEGV", {"copy": 1.0}, "FAILED: ended by SIGSEGV", True),
        (None, {"copy": 1.0}, "done", False),
    ],
)
def test_what_became_of_a_part_is_one_line(error, figures, verdict, failed) -> None:
    outcome = Outcome(1.0, error, figures)
    assert (outcome.verdict, outcome.failed) == (verdict, failed)
