"""The command `dragoman import`."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.bundle import Bundle, sha256
from dragoman.cli import main
from dragoman.language_marks import LanguageMarks
from tests import hugging_face_files, imported, marian_bin, web

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def opus() -> Path:
    return imported.pair()


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Gives the one line with which the command ends."""
    try:
        code = main(["import", *map(str, arguments)])
    except SystemExit as left:
        code = left.code
    captured = capsys.readouterr()
    assert code == 2
    assert captured.err.count("\n") == 1
    return captured.err


def test_a_checkpoint_and_what_is_said_of_it(opus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(opus), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "Marian: 1 + 1 layers of width 32, 740 pieces, 0.0 million parameters" in said
    assert "languages: en to de" in said
    assert "warning: generation_config.json: no_repeat_ngram_size is 3, and is not applied" in said
    assert f"wrote {tmp_path / 'out'}, 0." in said
    record = json.loads((tmp_path / "out" / "import.json").read_text())
    assert record["family"] == "marian"
    assert {"config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"} <= set(record["source"])
    assert record["warnings"] == ["generation_config.json: no_repeat_ngram_size is 3, and is not applied"]


def test_a_folder_of_other_things_is_not_replaced(
    opus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "would be replaced, with" in refused(capsys, opus, "--out", opus.parent)
    (tmp_path / "notes.txt").touch()
    assert "would be replaced, but holds other things (no import.json)" in refused(capsys, opus, "--out", tmp_path)
    assert (tmp_path / "notes.txt").is_file()


def test_a_model_of_firefox_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = marian_bin.write_folder(tmp_path / "files", with_shortlist=True)
    with web.serving() as server:
        weights, *others = sorted(files.folder.iterdir(), key=lambda file: not file.name.startswith("model"))
        served = {file.name: file.read_bytes() for file in (weights, *others)}
        monkeypatch.setenv("DRAGOMAN_FIREFOX_MODELS", web.firefox_list(server, {"en-de": served}))
        assert main(["import", "firefox:en-de", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "languages: en to de\nlicence: MPL-2.0\n" in said
    record = json.loads((tmp_path / "out" / "import.json").read_text())
    assert (record["revision"], record["licence"]) == (sha256(weights), "MPL-2.0")
    assert set(record["source"]) == {weights.name, *(file.name for file in others)}
    assert [file for file in (tmp_path / "cache").rglob("*") if file.is_file() and file.suffix != ".lock"] == []


@pytest.mark.torch
def test_a_bundle_in_the_same_call(opus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    english, german = hugging_face_files.sentences()
    data = tmp_path / "data.tsv"
    data.write_text("".join(f"{a}\t{b}\n" for a, b in zip(english[:20], german[:20], strict=True)), encoding="utf-8")
    arguments = ["--out", tmp_path / "out", "--bundle", "fp32", "--name", "mine", "--data", data]
    limits = ["--source-language", "en-GB", "--target-language", "de"]
    assert main(["import", *map(str, [opus, *arguments, *limits])]) == 0
    said = capsys.readouterr().out
    assert "parity fp32: 20 of 20" in said
    assert f"dragoman serve --models {tmp_path / 'out' / 'bundle'}" in said
    manifest = Bundle.open(tmp_path / "out" / "bundle").manifest
    assert (manifest.name, manifest.family, manifest.languages.sources) == ("mine", "marian", ("en-GB",))
    assert manifest.languages.of("de") == LanguageMarks()


def test_the_bundle_leaves_room_for_tokens_that_translations_begin_with(
    opus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, asked = tmp_path / "opus-mt-en-de", []
    shutil.copytree(opus, folder)
    generation = json.loads((folder / "generation_config.json").read_text()) | {"forced_bos_token_id": 7}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    monkeypatch.setattr("export.importing.export", lambda argv: asked.append(argv) or 130)
    assert main(["import", str(folder), "--out", str(tmp_path / "out"), "--bundle", "fp32"]) == 130
    [argv] = asked
    positions = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    limits = {name: int(argv[argv.index(f"--max-{name}-tokens") + 1]) for name in ("source", "target")}
    assert limits == {"source": min(128, positions), "target": min(256, positions - 1)}
    assert positions < 128  # or the test would prove nothing


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "required: SOURCE, --out"),
        (["x", "--out", "y", "--name", "z"], "--name, --note and --data are for the bundle: give --bundle"),
        (["x", "--out", "y", "--note", "z"], "--name, --note and --data are for the bundle: give --bundle"),
        (["x", "--out", "y", "--languages", "de,,fr"], "codes of languages with commas between, is 'de,,fr'"),
        (["x", "--out", "y", "--bundle", "int4"], "invalid choice: 'int4'"),
        (["x", "--out", "y", "--bundle", "int8", "--data", "nowhere.tsv"], "nowhere.tsv: no such file"),
        (["nowhere", "--out", "y"], "nowhere: no such folder\n"),
        ([__file__, "--out", "y"], f"{__file__}: is a file; give its folder, {Path(__file__).parent}\n"),
        (["opus-mt-en-de", "--out", "y"], "opus-mt-en-de: no such folder; did you mean Helsinki-NLP/opus-mt-en-de?"),
    ],
)
def test_arguments(arguments: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert named in refused(capsys, *(tmp_path / "y" if argument == "y" else argument for argument in arguments))
    assert list(tmp_path.iterdir()) == []


def test_a_hub_that_cannot_be_reached(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman.cli", "import", "someone/opus-mt-en-de", "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "cache"), "PATH": ""},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "someone/opus-mt-en-de: no such folder, and the hub (http://127.0.0.1:9) cannot be reached" in done.stderr


def without(modules: list[str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the command where some modules are not installed."""
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({modules}))\n"
        "from dragoman.cli import main\n"
        f"sys.exit(main(['import', *{list(map(str, arguments))}]))"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)


def test_help_and_bad_arguments_need_nothing_else(tmp_path: Path) -> None:
    modules = ["torch", "langcodes", "safetensors", "yaml"]
    done = without(modules, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "--bundle" in done.stdout
    done = without(modules, "opus-mt-en-de", "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean Helsinki-NLP/opus-mt-en-de?" in done.stderr


def test_a_checkpoint_needs_no_torch(opus: Path, tmp_path: Path) -> None:
    assert main(["import", str(opus), "--out", str(tmp_path / "with")]) == 0
    done = without(["torch", "onnx", "onnxscript"], opus, "--out", tmp_path / "without")
    assert (done.returncode, done.stderr) == (0, "")
    for file in (tmp_path / "with").iterdir():
        assert (tmp_path / "without" / file.name).read_bytes() == file.read_bytes()
