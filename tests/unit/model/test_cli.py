"""The command `dragoman train`: its arguments, and what it says."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import main
from model.optim import Schedule
from tests.unit.model.test_train import TINY, assert_same_end, light_runs


@pytest.fixture(autouse=True)
def _light() -> Iterator[None]:
    with light_runs():
        yield


def flags(folder: Path, out: Path, **options: Any) -> list[str]:
    files = {"train": folder / "train.tsv", "dev": folder / "dev.tsv", "out": out}
    given = files | TINY | options
    return ["train", *[f"--{name.replace('_', '-')}={value}" for name, value in given.items()]]


@pytest.fixture
def data(corpus, tmp_path: Path) -> Path:
    lines = [f"{source}\t{target}\n" for source, target in zip(corpus.sources, corpus.targets, strict=True)]
    (tmp_path / "train.tsv").write_text("".join(lines[:90]), encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("".join(lines[90:98]), encoding="utf-8")
    return tmp_path


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


def test_a_contradiction_is_named_without_what_nobody_gave(data: Path, tmp_path: Path, capsys) -> None:
    assert main(flags(data, tmp_path / "out", heads=3)) == 2
    assert one_line(capsys) == "dragoman train: d_model 32 must be even and a multiple of heads 3\n"
    assert not (tmp_path / "out").exists()


def test_heads_that_cannot_be_exported_are_named(data: Path, tmp_path: Path, capsys) -> None:
    assert main(flags(data, tmp_path / "out", d_model=20)) == 2
    expected = "--d-model 20 divided by --heads 2 must be a multiple of 8, is 10"
    assert one_line(capsys) == f"dragoman train: {expected}\n"
    assert not (tmp_path / "out").exists()


def test_a_value_out_of_range_is_named(data: Path, tmp_path: Path, capsys) -> None:
    assert main(flags(data, tmp_path / "out", dropout=1.5)) == 2
    assert one_line(capsys) == "dragoman train: --dropout: must be less than 1, not 1.5\n"


def test_a_language_that_is_none_is_named(data: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit):
        main([*flags(data, tmp_path / "out"), "--source-language=English"])
    assert "--source-language: must be a BCP-47 code" in one_line(capsys)


def test_a_gpu_that_is_not_there_is_one_line(data: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(flags(data, tmp_path / "out", device="cuda")) == 2
    assert one_line(capsys).startswith("dragoman train: device cuda: torch finds no GPU here")


def test_an_empty_file_is_one_line(data: Path, tmp_path: Path, capsys) -> None:
    (data / "dev.tsv").write_text("")
    assert main(flags(data, tmp_path / "out")) == 2
    assert one_line(capsys) == f"dragoman train: {data / 'dev.tsv'}: is empty\n"


def test_languages_are_recorded_and_progress_is_said(data: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(flags(data, out, steps=6, source_language="en", target_language="de")) == 0
    options = json.loads((out / "checkpoint" / "training.json").read_text())["options"]
    assert (options["source_language"], options["target_language"]) == ("en", "de")
    captured = capsys.readouterr()
    said = [line.split()[0] for line in captured.out.splitlines()]
    assert said[:2] == ["reading", "training"]
    assert "BLEU -1" not in captured.err


def test_sources_weights_and_augmentation(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = [
        f"--train={data / 'dev.tsv'}",
        "--weight=*=2",
        "--weight=dev=0.5",
        "--augment=lower=0.1",
        "--augment=join=1",
    ]
    assert main([*flags(data, out, steps=6), *more]) == 0
    report = json.loads((out / "checkpoint" / "training.json").read_text())
    assert [each["file"] for each in report["train"]] == ["train.tsv", "dev.tsv"]
    assert report["options"]["weight"] == {"*": 2, "dev": 0.5}
    assert report["options"]["augment"] == {"lower": 0.1, "join": 1}


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--weight=ui", "argument --weight: must be PATTERN=COPIES, is 'ui'"),
        ("--weight==2", "argument --weight: must be PATTERN=COPIES, is '=2'"),
        ("--augment=lower=often", "argument --augment: must be KIND=SHARE, is 'lower=often'"),
        ("--weight=*=3", "argument --weight: '*' is given twice"),
    ],
)
def test_an_assignment_that_is_none(data: Path, tmp_path: Path, capsys, flag: str, message: str) -> None:
    with pytest.raises(SystemExit):
        main([*flags(data, tmp_path / "out"), "--weight=*=2", flag])
    assert one_line(capsys) == f"dragoman train: {message}\n"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--weight=dev=-1", "--weight dev: must be greater than or equal to 0, not -1.0"),
        ("--augment=lower=1.5", "--augment lower: must be less than or equal to 1, not 1.5"),
        (
            "--augment=lwr=0.5",
            "--augment lwr: must be 'join', 'no-stop', 'typos', 'lower', 'title', 'caps', 'emoji', 'times', 'numbers'",
        ),
        ("--weight=ui-*=2", "--weight: 'ui-*' matches no tag of the corpus; its tags are train"),
    ],
)
def test_an_assignment_of_something_else(data: Path, tmp_path: Path, capsys, flag: str, message: str) -> None:
    assert main([*flags(data, tmp_path / "out"), flag]) == 2
    assert one_line(capsys).startswith(f"dragoman train: {message}")
    assert not (tmp_path / "out").exists()


def test_ctrl_c_saves_and_says_how_to_go_on(data: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    """Between two saves; the resumed run ends exactly as one that was never interrupted."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert main(flags(data, whole)) == 0
    rate = Schedule.rate

    def interrupted(self: Schedule, step: int) -> float:
        if step == 4:  # the fifth
            os.kill(os.getpid(), signal.SIGINT)
        return rate(self, step)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(Schedule, "rate", interrupted)
    capsys.readouterr()
    assert main(flags(data, out)) == 130
    assert signal.getsignal(signal.SIGINT) is before
    line = capsys.readouterr().err.splitlines()[-1]
    expected = f"interrupted; the run is saved in {out}; the same command with --resume continues it"
    assert line == f"dragoman train: {expected}"
    assert json.loads((out / "state" / "progress.json").read_text())["step"] == 5
    monkeypatch.undo()
    assert main([*flags(data, out), "--resume"]) == 0
    assert_same_end(whole, out)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("train_tokenizer", "no step was saved; the same command starts again"),
        ("Optimizers", "the same command with --resume starts"),
    ],
)
def test_ctrl_c_before_the_first_step(data: Path, tmp_path: Path, capsys, monkeypatch, method: str, words: str) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"model.train.{method}", interrupt)
    assert main(flags(data, tmp_path / "out")) == 130
    assert words in capsys.readouterr().err
