"""What `dragoman inspect` prints and draws, of the default model and of a random one."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from dragoman.cli import main
from model.inspection import heatmaps

MODEL = Path(__file__).parents[3] / "models" / "en-de"
CHECKPOINT, BUNDLE = MODEL / "checkpoint", MODEL / "bundle"

Drawn = Callable[[Path], NDArray[np.float32]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The numbers of the first heatmap that was drawn for a file; the file is not written, which takes long."""
    figures: dict[Path, Figure] = {}

    def keep(figure: Figure, file: Path) -> None:
        figures[file] = figure
        plt.close(figure)

    monkeypatch.setattr(heatmaps, "save", keep)
    return lambda file: np.asarray(figures[file].axes[0].images[0].get_array())


def rows_of(output: str) -> dict[str, str]:
    return {name: value.strip() for name, value in (row.split("  ", 1) for row in output.splitlines() if "  " in row)}


def test_a_checkpoint_is_tables_and_a_picture_of_every_head(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "attention.png"
    assert main(["inspect", str(CHECKPOINT), "--attention", str(file), "--text", "Good morning."]) == 0
    output = capsys.readouterr().out
    rows, config = rows_of(output), json.loads((CHECKPOINT / "config.json").read_text())
    assert int(rows["d_model"]) == config["d_model"]
    assert rows["all parameters"] == "15,681,024"
    assert output.splitlines()[-1] == "Guten Morgen."
    assert file.read_bytes().startswith(b"\x89PNG")


def test_a_bundle_is_tables_and_the_attention_of_its_engine(
    tmp_path: Path, drawn: Drawn, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "alignment.png"
    assert main(["inspect", str(BUNDLE), "--alignment", str(file), "--text", "Good morning, Tom."]) == 0
    output = capsys.readouterr().out
    rows = rows_of(output)
    assert (rows["name"], rows["source languages"], rows["parameters"]) == ("en-de", "en", "15,681,024")
    assert rows["alignment heads"] == "0, 1, 2, 3 of decoder layer 1"
    assert rows["encoder.onnx"] == f"{(BUNDLE / 'encoder.onnx').stat().st_size:,} bytes"
    assert output.splitlines()[-1] == "Guten Morgen, Tom."
    weights = drawn(file)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-4)


def inspect_without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command where a module is not installed."""
    code = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from dragoman.cli import main\n"
        f"sys.exit(main(['inspect', *{arguments}]))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=MODEL.parents[1])


def test_a_picture_of_a_bundle_needs_matplotlib_and_no_torch(tmp_path: Path) -> None:
    file = tmp_path / "alignment.xyz"
    flags = [str(BUNDLE), "--alignment", str(file), "--text", "Good morning."]
    done = inspect_without("torch", *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert file.read_bytes().startswith(b"\x89PNG")
    done = inspect_without("matplotlib", *flags)
    assert done.returncode == 2
    assert done.stderr.endswith("""(no module 'matplotlib'): pip install "dragoman-server[plots]"\n""")


@pytest.mark.parametrize("translation", ["", "Er ist da."])
def test_a_bundle_looks_where_its_checkpoint_does(
    translation: str, checkpoint: Path, exported: Callable[[str], Any], tmp_path: Path, drawn: Drawn
) -> None:
    bundle = exported("fp32").bundle.path
    told = ["--text", "He is there, Tom.", *(["--translation", translation] if translation else [])]
    for name, model in (("checkpoint", [str(checkpoint), f"--bundle={bundle}"]), ("bundle", [str(bundle)])):
        assert main(["inspect", *model, "--alignment", str(tmp_path / name), *told]) == 0
    ours, theirs = drawn(tmp_path / "bundle"), drawn(tmp_path / "checkpoint")
    # A random model may write until the limit, which is another for a bundle.
    assert len(ours) == len(theirs) if translation else len(ours) > 0
    np.testing.assert_allclose(ours, theirs[: len(ours)], atol=1e-5)


@pytest.mark.parametrize(
    ("model", "flags", "said"),
    [
        (CHECKPOINT, ["--attention", "x.png"], "--text and one of --attention and --alignment need each other"),
        (BUNDLE, ["--text", "a"], "--text and one of --attention and --alignment need each other"),
        (CHECKPOINT, ["--alignment", "x.png", "--text", "a"], "give --bundle, or a bundle itself"),
        (BUNDLE, ["--attention", "x.png", "--text", "a"], "--attention: is for a checkpoint"),
        (
            CHECKPOINT,
            ["--attention", "x.png", "--text", "a", "--target-language", "fr"],
            "the target language is fr: the model has de",
        ),
        (
            BUNDLE,
            ["--alignment", "x.png", "--text", "a", "--target-language", "fr"],
            "the target language is fr: the model has de",
        ),
        (
            CHECKPOINT,
            ["--attention", "x.png", "--text", "a " * 600],
            "--text has 601 tokens, more than the 512 of the model",
        ),
        (
            BUNDLE,
            ["--alignment", "x.png", "--text", "a " * 600],
            "--text has 601 tokens, more than the 128 of the model",
        ),
        (BUNDLE, ["--alignment", "x.png", "--text", "a", "--translation", " "], "the translation has no tokens"),
        (CHECKPOINT, ["--attention", "x.png", "--text", "a", "--translation", "b " * 600], "--translation has"),
        (BUNDLE, ["--alignment", "x.png", "--text", "a", "--translation", "b " * 600], "--translation has"),
    ],
)
def test_refuses_in_one_line(model: Path, flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["inspect", str(model), *flags])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_bundle_of_another_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = Manifest.read(BUNDLE)
    other = manifest.provenance.model_copy(update={"checkpoint_sha256": "0"})
    (tmp_path / "bundle.json").write_text(manifest.model_copy(update={"provenance": other}).model_dump_json())
    flags = [f"--bundle={tmp_path}", "--text=a", f"--alignment={tmp_path / 'x.png'}"]
    assert main(["inspect", str(CHECKPOINT), *flags]) == 2
    assert f"--bundle: {tmp_path} was made of another checkpoint than {CHECKPOINT}" in capsys.readouterr().err


def test_a_folder_that_is_neither_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path)]) == 2
    assert "neither a checkpoint (config.json) nor a bundle (bundle.json)" in capsys.readouterr().err
