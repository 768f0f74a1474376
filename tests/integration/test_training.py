"""`dragoman train` as a user runs it, killed as an operating system kills it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model.checkpoint import load_checkpoint

REPOSITORY = Path(__file__).parents[2]
PAIRS = REPOSITORY / "tests" / "data" / "en-de.tsv"
DEV_PAIRS = 40
PATIENCE_S = 300.0
# Evaluations at some of the saves: a run must go on alike whether it was killed before one or after.
OPTIONS = {
    "vocabulary-size": 400,
    "d-model": 32,
    "heads": 2,
    "d-ff": 64,
    "encoder-layers": 2,
    "decoder-layers": 1,
    "norm": "post",
    "candidates": 4,
    "batch-tokens": 1500,
    "steps": 60,
    "warmup-steps": 10,
    "decay-steps": 20,
    "save-steps": 4,
    "evaluate-steps": 20,
    "average": 3,
    "weight": "train=1.5",
    "augment": "copies=0.3",
    "device": "cpu",
}


class Run:
    """A training run in a process of its own."""

    def __init__(self, folder: Path, train_file: Path, dev_file: Path) -> None:
        self.out = folder
        options = {"train": train_file, "dev": dev_file, "out": folder} | OPTIONS
        self._arguments = [f"--{name}={value}" for name, value in options.items()]

    def start(self, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dragoman.cli", "train", *self._arguments, *more]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}  # sums in the same order, run by run
        return subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, *more: str) -> str:
        """Runs to the end, and gives what it printed."""
        process = self.start(*more)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, stderr
        return stdout

    def saved_step(self) -> int:
        """The step of the newest state; 0 where there is none, or where it is being replaced right now."""
        try:
            return int(json.loads((self.out / "state" / "progress.json").read_text())["step"])
        except FileNotFoundError:
            return 0

    def kill_at(self, step: int, *more: str) -> int:
        """Runs until a state of this step or a later one is saved, kills it, and gives the step of the state."""
        process = self.start(*more)
        end_s = time.monotonic() + PATIENCE_S
        while self.saved_step() < step and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        return self.saved_step()

    def interrupt_at(self, step: int) -> str:
        """Runs as `kill_at` does, but with a Ctrl-C, which all processes of a terminal get; gives what it printed."""
        process = self.start()
        end_s = time.monotonic() + PATIENCE_S
        while self.saved_step() < step and process.poll() is None and time.monotonic() < end_s:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, stderr = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130, stderr
        return stderr

    def tensors(self, name: str) -> dict[str, torch.Tensor]:
        return load_file(self.out / name)

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.out / "checkpoint" / "training.json").read_text())
        return report


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Training and dev pairs, with two broken lines among the former."""
    folder = tmp_path_factory.mktemp("corpora")
    lines = PAIRS.read_text(encoding="utf-8").splitlines(keepends=True)
    train, dev = lines[DEV_PAIRS:], lines[:DEV_PAIRS]
    train.insert(6, "no tab at all\n")
    train.insert(99, "one\ttab\ttoo many\n")
    files = folder / "train.tsv", folder / "dev.tsv"
    for file, part in zip(files, (train, dev), strict=True):
        file.write_text("".join(part), encoding="utf-8")
    return files


@pytest.fixture(scope="module")
def whole(corpora: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    """A run that nothing disturbed, and what it printed."""
    run = Run(tmp_path_factory.mktemp("whole") / "run", *corpora)
    return run, run.finish()


def test_what_a_run_leaves(whole: tuple[Run, str], corpora: tuple[Path, Path]) -> None:
    run, printed = whole
    assert f"{corpora[0]}: 2 broken lines left out, at line 7, 100\n" in printed
    assert "step 20: dev BLEU" in printed
    assert printed.splitlines()[-1].endswith(f"checkpoint: {run.out / 'checkpoint'}")
    assert (run.out / "learning-curve.png").read_bytes().startswith(b"\x89PNG")
    assert run.saved_step() == 60
    report = run.report()
    assert [each["broken_lines"] for each in report["train"]] == [2]
    assert report["steps"] in (20, 40, 60)
    assert {"train", "dev", "options", "versions", "parameters", "epochs", "dev_scores"} <= report.keys()
    model, tokenizer = load_checkpoint(run.out / "checkpoint")
    assert model.config.norm == "post"
    assert tokenizer.vocabulary_sizes == (400, 400)


def test_killed_and_resumed_it_ends_bitwise_the_same(
    whole: tuple[Run, str], corpora: tuple[Path, Path], tmp_path: Path
) -> None:
    run = Run(tmp_path / "run", *corpora)
    first = run.kill_at(4)
    second = run.kill_at(20, "--resume")
    assert 4 <= first <= second < 60
    run.finish("--resume")
    for name in ("state/model.safetensors", "state/optimizer.safetensors", "checkpoint/model.safetensors"):
        expected, actual = whole[0].tensors(name), run.tensors(name)
        assert expected.keys() == actual.keys()
        assert not [key for key in expected if not torch.equal(expected[key], actual[key])], name
    reports = whole[0].report(), run.report()
    for report in reports:
        del report["seconds"]
    assert reports[0] == reports[1]


def test_ctrl_c_in_a_terminal_is_one_line(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    """The process that makes batches gets the signal, too."""
    run = Run(tmp_path / "run", *corpora)
    stderr = run.interrupt_at(4)
    assert "Traceback" not in stderr
    expected = f"interrupted; the run is saved in {run.out}; the same command with --resume continues it"
    assert stderr.splitlines()[-1] == f"dragoman train: {expected}"


def test_a_folder_with_something_in_it(whole: tuple[Run, str]) -> None:
    run, _ = whole
    process = run.start()
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert stdout == ""
    assert stderr == f"dragoman train: {run.out} is not empty; --resume goes on with the run in it\n"
    assert run.saved_step() == 60


def test_a_corpus_with_too_many_broken_lines(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.tsv"
    broken.write_text("a\tb\n" * 90 + "no tab\n" * 10)
    process = Run(tmp_path / "run", broken, corpora[1]).start()
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert stdout == f"reading {broken} and {corpora[1]}\n"
    assert stderr.count("\n") == 1
    assert "10 of 100 lines are not 'source<TAB>target' in UTF-8" in stderr
    assert not (tmp_path / "run").exists()
