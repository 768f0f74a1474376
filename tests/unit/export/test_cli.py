"""Arguments of export and evaluate, which are checked before anything is loaded."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman.cli import main
from dragoman.language_marks import LanguageMarks, Languages
from export.parity import Parity
from export.write import Target
from model.corpus import Corpus

ROOT = Path(__file__).parents[3]
CHECKPOINT = ROOT / "models" / "en-de" / "checkpoint"
DATA = ROOT / "tests" / "data" / "en-de.tsv"


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Gives the one line with which a command refuses its arguments."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as left:
        code = left.code
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A folder that looks like a checkpoint and says nothing of languages."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> list[Target]:
    """What was to be exported; nothing is."""
    asked: list[Target] = []

    def export_bundle(checkpoint: Path, out: Path, target: Target, *others: object) -> Parity:
        asked.append(target)
        return Parity("fp32", 1, 1, 100.0)

    monkeypatch.setattr("export.write.export_bundle", export_bundle)
    return asked


def record(checkpoint: Path, **options: str) -> None:
    (checkpoint / "training.json").write_text(json.dumps({"options": options}))


def test_a_language_into_itself(capsys: pytest.CaptureFixture[str]) -> None:
    languages = "--source-language=de", "--target-language=de"
    line = refused(capsys, "export", CHECKPOINT, "--out", "x", *languages)
    assert line == "dragoman export: --source-language, --target-language: both are de\n"


@pytest.mark.parametrize("command", ["train", "export", "evaluate"])
def test_help_and_bad_arguments_need_no_torch(command: str) -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['onnx'] = sys.modules['sacrebleu'] = None\n"
        "from dragoman.cli import main; sys.exit(main())"
    )
    run = [sys.executable, "-c", code, command]
    helped = subprocess.run([*run, "--help"], capture_output=True, text=True, timeout=120)
    assert (helped.returncode, helped.stderr) == (0, "")
    assert helped.stdout.startswith(f"usage: dragoman {command} ")
    bad = subprocess.run([*run, "--no-such-flag"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2
    assert bad.stderr.startswith(f"dragoman {command}: ")
    assert bad.stderr.count("\n") == 1


def test_export_needs_no_extra_of_import() -> None:
    server = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    others = {"filelock": "filelock", "huggingface_hub": "huggingface_hub", "langcodes": "langcodes", "pyyaml": "yaml"}
    extra = {line.partition(">")[0] for line in server["import"]}
    trained = {line.partition(">")[0] for line in server["train"]}
    assert extra - trained == {*others, "ml-dtypes"}  # which onnx needs, too
    code = f"import sys; sys.modules.update(dict.fromkeys({[*others.values()]})); import export.write, export.quality"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("calibrate --data x", "--plot"),
        ("evaluate --data x", "--translations"),
        ("inspect", "--alignment"),
        ("inspect", "--attention"),
        ("inspect", "--positions"),
    ],
)
def test_a_file_that_cannot_be_written_is_found_before_any_work(command: str, flag: str, capsys) -> None:
    line = refused(capsys, *command.split(), "no-such-folder", flag, "/no/such/folder/x")
    assert line.endswith(
        f"argument {flag}: cannot write a file '/no/such/folder/x': there is no folder /no/such/folder\n"
    )


def test_languages_are_required_where_the_checkpoint_has_none(checkpoint: Path, capsys) -> None:
    line = refused(capsys, "export", checkpoint, "--out", "x", "--source-language", "fr")
    assert "--target-language needed" in line
    for content in ("{}", '{"options": {"seed": 1}}'):
        (checkpoint / "training.json").write_text(content)
        line = refused(capsys, "export", checkpoint, "--out", "x")
        assert "--source-language and --target-language needed" in line


def test_a_folder_of_other_things_is_not_replaced(checkpoint: Path, tmp_path: Path, capsys) -> None:
    line = refused(capsys, "export", checkpoint, "--out", checkpoint.parent)
    assert line == f"dragoman export: {tmp_path}: would be replaced, with {checkpoint} in it; name another folder\n"
    (tmp_path / "models" / "en-de").mkdir(parents=True)
    line = refused(capsys, "export", checkpoint, "--out", tmp_path / "models")
    assert f"{tmp_path / 'models'}: would be replaced, but holds other things" in line
    line = refused(capsys, "export", checkpoint, "--out", ".")
    assert "name another folder" in line
    assert (tmp_path / "models" / "en-de").is_dir()


def test_languages_of_the_checkpoint_are_taken_and_flags_win(checkpoint: Path, targets: list[Target], tmp_path) -> None:
    record(checkpoint, source_language="fr", target_language="it")
    command = ["export", str(checkpoint), "--out", str(tmp_path / "x"), "--data", str(DATA)]
    assert main(command) == 0
    assert main([*command, "--target-language", "es"]) == 0
    assert [target.languages for target in targets] == [Languages.pair("fr", "it"), Languages.pair("fr", "es")]


def test_the_committed_checkpoint_says_its_languages(targets: list[Target], tmp_path) -> None:
    assert main(["export", str(CHECKPOINT), "--out", str(tmp_path / "x")]) == 0
    assert [(target.name, target.languages) for target in targets] == [("en-de", Languages.pair("en", "de"))]


def test_a_note_is_one_line(targets: list[Target], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", str(CHECKPOINT), "--out", str(tmp_path / "x")]
    assert main([*command, "--note", "short everyday sentences"]) == 0
    assert targets[0].note == "short everyday sentences"
    capsys.readouterr()
    rule = "argument --note: must be one line of at most 200 characters, is"
    assert f"{rule} 201 characters" in refused(capsys, *command, "--note", "a" * 201)
    assert rule in refused(capsys, *command, "--note", "two\nlines")


def test_the_languages_of_an_import_keep_their_marks(checkpoint: Path, targets: list[Target], capsys, tmp_path) -> None:
    pair = Languages(sources=("en",), targets=("ro",), marks={"ro": LanguageMarks(target_prefix=(3,))})
    (checkpoint / "languages.json").write_text(pair.model_dump_json())
    command = ["export", str(checkpoint), "--out", str(tmp_path / "x"), "--data", str(DATA)]
    assert main([*command, "--target-language", "ro-MD"]) == 0
    assert targets[0].languages.of("ro-MD").target_prefix == (3,)
    many = Languages(sources=("en", "de"), targets=("de",))
    (checkpoint / "languages.json").write_text(many.model_dump_json())
    capsys.readouterr()
    assert "--data: the checkpoint has many languages" in refused(capsys, *command)
    del command[-2:]
    assert main(command) == 0
    assert (targets[1].name, targets[1].languages) == ("mul-de", many)
    capsys.readouterr()
    assert "the checkpoint has many" in refused(capsys, *command, "--source-language", "en")


def test_sentences_are_those_asked_for_then_of_the_checkpoint_then_of_the_package(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(checkpoint, source_language="en", target_language="de")
    corpora: list[Corpus | None] = []
    parity = Parity("int8", 40, 26, agreement=85.43, log_probability_loss=0.02)
    monkeypatch.setattr("export.write.export_bundle", lambda *arguments: corpora.append(arguments[3]) or parity)
    (tmp_path / "lines.txt").write_text("One sentence.\n\n  Another.\n")
    command = ["export", str(checkpoint), "--out", str(tmp_path / "x")]
    assert main(command) == 0
    warned = (
        "warning: 26 of 40 sentences are equal, and BLEU is 85.43; as a rule these are at least 75% and 88; compare on"
    )
    assert f"{warned} sentences of its own kind (--data FILE), or make an fp32 bundle" in capsys.readouterr().out
    (checkpoint / "parity.tsv").write_text("a\tb\n")
    assert main(command) == 0
    assert main([*command, "--data", str(tmp_path / "lines.txt")]) == 0
    assert corpora == [None, Corpus(["a"], ["b"], []), Corpus(["One sentence.", "Another."], [], [])]


@pytest.mark.parametrize("content", ["", "[]", '{"options": 3}', '{"options": {"source_language": "English"}}'])
def test_a_broken_record_is_one_line(checkpoint: Path, content: str, capsys) -> None:
    (checkpoint / "training.json").write_text(content)
    assert str(checkpoint / "training.json") in refused(capsys, "export", checkpoint, "--out", "x")


@pytest.mark.parametrize(
    ("flag", "value", "why"),
    [
        ("--source-language", "English", "must be a BCP-47 code"),
        ("--target-language", "de_DE", "must be a BCP-47 code"),
        ("--name", "a/b", "must be 1 to 64 letters"),
        ("--max-source-tokens", "1", "must be a whole number above 1"),
        ("--precision", "int4", "invalid choice"),
    ],
)
def test_bad_values_are_found_at_once(flag: str, value: str, why: str, capsys) -> None:
    line = refused(capsys, "export", CHECKPOINT, "--out", "x", flag, value)
    assert flag in line
    assert why in line


@pytest.mark.parametrize("model", [CHECKPOINT, CHECKPOINT.parent / "bundle"])
def test_a_language_that_the_model_does_not_have_is_refused_before_anything_is_translated(model: Path, capsys) -> None:
    line = refused(capsys, "evaluate", model, "--data", DATA, "--target-language", "fr")
    assert "the target language is fr: the model has de" in line


def test_a_folder_that_is_neither_says_what_is_below_it(capsys, tmp_path: Path) -> None:
    line = refused(capsys, "evaluate", CHECKPOINT.parent, "--data", "x")
    assert "neither a checkpoint (config.json) nor a bundle (bundle.json)" in line
    assert f"{CHECKPOINT.parent / 'bundle'}, {CHECKPOINT}" in line
    assert refused(capsys, "evaluate", tmp_path, "--data", "x").endswith("nor a bundle (bundle.json)\n")
    assert refused(capsys, "evaluate", tmp_path / "no", "--data", "x").endswith("no: no such folder\n")
    assert "is a bundle, not a checkpoint" in refused(capsys, "export", CHECKPOINT.parent / "bundle", "--out", "x")
    assert refused(capsys, "export", tmp_path / "no", "--out", "x").endswith("no: no such folder\n")


@pytest.mark.parametrize(
    ("work", "arguments"),
    [
        ("cli._export", ["export", CHECKPOINT, "--out", "x"]),
        ("cli._evaluate", ["evaluate", CHECKPOINT, "--data", "x"]),
        ("importing._run", ["import", "x", "--out", "x"]),
        ("quality._calibrate", ["calibrate", CHECKPOINT.parent / "bundle", "--data", "x"]),
    ],
)
def test_ctrl_c_says_that_nothing_was_written(work: str, arguments: list[object], monkeypatch, capsys) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"export.{work}", interrupt)
    assert main([str(argument) for argument in arguments]) == 130
    assert capsys.readouterr().err == f"dragoman {arguments[0]}: interrupted; nothing was written\n"


def test_all_that_export_reads_comes_with_its_extra() -> None:
    """Commands of this folder name the extra `import` where a module is missing; pictures, the extra `plots`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["import"], "matplotlib"]
    there = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in wanted} | {"yaml"}
    ours = {"dragoman", "service", "plugins", "model", "export"} | sys.stdlib_module_names
    imported: set[str] = set()
    for file in (*(ROOT / "export").glob("*.py"), ROOT / "model" / "scores.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    assert imported - ours <= there
    assert {"onnx", "sacrebleu"} <= imported
