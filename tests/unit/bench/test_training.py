"""The measurement of training, on batches that are small."""

import json
from pathlib import Path

import pytest

from bench.cli import main
from bench.training import Update, tokens_of
from model.options import TrainingOptions

pytestmark = pytest.mark.torch


def test_each_length_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    arguments = ["--lengths", "4,8", "--rounds", "1", "--vocabulary-size", "300", "--batch-tokens", "64"]
    assert main(["training", *arguments, "--json", str(out)]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[:4]] == ["length", "---", "4", "8"]
    rows = json.loads(out.read_text())["rows"]
    assert all(row["tokens_per_s"] > 0 for row in rows)


def test_tokens_are_those_of_the_batch() -> None:
    options = TrainingOptions(batch_tokens=64)
    for length in (8, 24, 40):
        source, lengths, _, target = Update(options).batch(length)
        assert tokens_of(options, length) == int(lengths.sum()) + target.numel() == source.numel() + target.numel()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dropout", "1"], "--dropout: must be less than 1, not 1.0"),
        (["--vocabulary-size", "100"], "--vocabulary-size: must be greater than 260, not 100"),
        (["--vocabulary-size", "99999999"], "--vocabulary-size: must be less than or equal to 16777216"),
        (["--lengths", "9000"], "--lengths: 9000 is above 512, the positions or --batch-tokens"),
        (["--lengths", "12,40", "--batch-tokens", "30"], "--lengths: 40 is above 30, the positions or --batch-tokens"),
    ],
)
def test_what_cannot_be_measured_is_named(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["training", *arguments])
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dragoman bench training: argument {message}")
