import time
from pathlib import Path

import pytest

from bench.gpu.runner import Outcome, Process
from bench.gpu.setup import Setup


@pytest.fixture
def setup_file(setup: Setup) -> Path:
    file = setup.work / "setup.json"
    setup.write(file)
    return file


def outcome_of(behaviour: str, setup_file: Path, seconds: float = 60.0) -> Outcome:
    process = Process(f"the {behaviour}", f"tests.unit.bench.gpu.behaviours:{behaviour}", "base", seconds, setup_file)
    process.wait()
    return process.end()


def test_a_part_is_given_its_setup_and_its_figures_come_back(setup_file: Path) -> None:
    outcome = outcome_of("succeeds", setup_file)
    assert (outcome.error, outcome.figures) == (None, {"size": "base", "slots": 2, "in_time": True})
    assert outcome.seconds > 0


def test_setup_is_read_as_it_was_written(setup: Setup, setup_file: Path) -> None:
    assert Setup.read(setup_file) == setup


def test_a_part_that_fails_is_one_line_and_keeps_what_it_has(setup_file: Path) -> None:
    outcome = outcome_of("fails", setup_file)
    assert outcome.error == "RuntimeError: no memory"
    assert outcome.figures == {"rows": [{"slots": 1}]}
    assert "Traceback" in (setup_file.parent / "the-fails.log").read_text()


def test_a_part_that_crashes_keeps_what_it_has(setup_file: Path) -> None:
    outcome = outcome_of("crashes", setup_file)
    assert outcome.error == "ended by SIGSEGV: about to crash"
    assert outcome.figures == {"rows": [{"slots": 1}]}


def test_a_part_that_leaves_without_a_word_is_an_error(setup_file: Path) -> None:
    outcome = outcome_of("exits", setup_file)
    assert outcome == Outcome(outcome.seconds, "ended with exit code 3: it printed nothing", {})


def test_a_part_that_cannot_be_imported_is_an_error(setup_file: Path) -> None:
    assert (outcome_of("missing", setup_file).error or "").startswith("AttributeError")


def test_a_part_that_hangs_is_ended_with_its_processes(setup_file: Path) -> None:
    process = Process("the hang", "tests.unit.bench.gpu.behaviours:hangs", "base", 600.0, setup_file)
    found = setup_file.with_name("the-hang.json")
    while not found.exists():
        assert not process.wait(0.05)
    outcome = process.end()
    assert (outcome.error or "").startswith("was ended after")
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


def test_the_time_of_a_part_ends_the_waiting(setup_file: Path) -> None:
    process = Process("the hang", "tests.unit.bench.gpu.behaviours:hangs", "base", 0.1, setup_file)
    assert not process.wait()
    assert (process.end().error or "").startswith("was ended after")
