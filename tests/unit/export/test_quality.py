"""`dragoman calibrate`: what it writes into a bundle, what it prints, what it refuses."""

import shutil
from pathlib import Path

import pytest

from dragoman.bundle import FORMAT, Bundle
from dragoman.cli import main
from export.quality import table
from export.quality_fit import Bin

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "en-de.tsv"
PAIRS = 300


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "models" / "en-de" / "bundle", tmp_path / "bundle"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Sentences of which the default model translates some badly, as their references are of others."""
    lines = DATA.read_text(encoding="utf-8").splitlines()[:PAIRS]
    pairs = [line.split("\t") for line in lines]
    wrong = [f"{pairs[place][0]}\t{pairs[-1 - place][1]}" for place in range(0, PAIRS, 3)]
    file = tmp_path / "dev.tsv"
    file.write_text("\n".join([*lines, *wrong]) + "\n", encoding="utf-8")
    return file


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    code = main(["calibrate", *map(str, arguments)])
    captured = capsys.readouterr()
    assert (code, captured.err.count("\n")) == (2, 1)
    return captured.err


def test_a_calibrated_bundle_is_the_same_but_for_its_manifest(
    bundle: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Bundle.open(bundle).manifest
    plot = tmp_path / "reliability.xyz"
    assert main(["calibrate", str(bundle), f"--data={data}", f"--plot={plot}"]) == 0
    after = Bundle.open(bundle).manifest
    assert after.quality is not None
    assert after.quality.mean_log_probability > 0 > after.quality.log_doubt
    assert after.format_version == FORMAT
    assert after.model_copy(update={"format_version": before.format_version, "quality": before.quality}) == before
    assert plot.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "each half estimated by a fit to the other half:\nestimate " in printed
    assert printed.endswith(f"wrote quality into {bundle}\n")


def test_too_few_of_a_kind_are_refused(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = tmp_path / "few.tsv"
    few.write_text("Good morning.\tGuten Morgen.\nThank you.\tDanke.\n")
    before = (bundle / "bundle.json").read_bytes()
    assert "at least 20 sentences whose translation is accepted" in refused(capsys, bundle, f"--data={few}")
    assert (bundle / "bundle.json").read_bytes() == before


def test_a_checkpoint_is_no_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, ROOT / "models" / "en-de" / "checkpoint", f"--data={DATA}")
    assert "is a checkpoint, not a bundle" in message


def test_the_table_says_how_much_is_chance() -> None:
    rows = table([Bin(0.0, 0.1, 100, 0.05, 0.04), Bin(0.1, 0.2, 0, float("nan"), float("nan"))]).splitlines()
    assert rows[1] == "0.0 to 0.1        100      0.050     0.040  (+-0.043 by chance)"
    assert rows[2] == "0.1 to 0.2          0          -         -"
