"""The models of a folder, as a table and as JSON."""

import json
from pathlib import Path

import pytest

from dragoman.cli import main

MANIFEST = json.loads((Path(__file__).parents[4] / "models/en-de/bundle/bundle.json").read_text())
HEADS = ["NAME", "FROM", "TO", "FAMILY", "PRECISION", "MAX SOURCE", "MAX TARGET", "VOCABULARY", "PARAMETERS"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, source in (("second", "de-AT"), ("first", "en")):
        (tmp_path / name).mkdir()
        manifest = MANIFEST | {
            "name": name,
            "languages": {"sources": [source], "targets": ["de"]},
            "max_target_tokens": 99,
        }
        (tmp_path / name / "bundle.json").write_text(json.dumps(manifest))
    return tmp_path


def test_a_table_has_a_line_for_each_model_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={folder}"]) == 0
    heads, *lines = capsys.readouterr().out.splitlines()
    starts = [heads.index(head) for head in HEADS]
    cells = [[line[start:].split("  ")[0].strip() for start in starts] for line in lines]
    shared = ["de", *(str(MANIFEST[name]) for name in ("family", "precision", "max_source_tokens"))]
    sizes = [str(MANIFEST[name]) for name in ("vocabulary_size", "parameters")]
    assert cells == [["first", "en", *shared, "99", *sizes], ["second", "de-AT", *shared, "99", *sizes]]
    assert not any(line.endswith(" ") for line in (heads, *lines))


def test_json_has_an_object_for_each_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={folder}", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    shown = {"max_target_tokens": 99, "name": "first", "source_languages": ["en"], "target_languages": ["de"]}
    assert first == {name: (MANIFEST | shown)[name] for name in first}
    assert len(first) == len(HEADS)
    assert second == first | {"name": "second", "source_languages": ["de-AT"]}


def test_a_folder_without_models_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", f"--models={tmp_path}"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"{tmp_path}: there is no bundle" in err


def test_flags_for_a_server_need_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["models", f"--models={tmp_path}", "--api-key=x"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dragoman models: argument --api-key: needs --address\n"
