"""`dragoman export` and `dragoman evaluate` as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.bundle import Bundle
from tests import synthetic

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 300.0


def dragoman(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short enough for the synthetic model."""
    file = tmp_path_factory.mktemp("corpus") / "corpus.tsv"
    file.write_text("".join(f"{text}\tEs ist ein Satz.\n" for text in synthetic.texts()), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def run(
    synthetic_checkpoint: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A bundle, and how its export went."""
    out = tmp_path_factory.mktemp("export") / "bundle"
    limits = "--max-source-tokens=28", "--max-target-tokens=24"
    languages = "--source-language=en-GB", "--target-language=de", "--name=tiny"
    arguments = "--precision=fp32", f"--data={corpus}", f"--out={out}", *limits, *languages
    return out, dragoman("export", synthetic_checkpoint, *arguments)


def test_export(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, process = run
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    *phases, parity, wrote = process.stdout.splitlines()
    assert [phase.split()[0] for phase in phases] == [
        "making",
        "translating",
        "measuring",
        "writing",
        "comparing",
        "looking",
    ]
    assert parity.startswith("parity fp32: 16 of 16 sentences equal alone and in batches; BLEU ")
    assert wrote.startswith(f"wrote {out} in ")
    manifest = Bundle.open(out).manifest
    assert (manifest.name, manifest.source_languages, manifest.precision) == ("tiny", ("en-GB",), "fp32")
    assert (manifest.max_source_tokens, manifest.max_target_tokens) == (28, 24)
    assert [path.name for path in out.parent.iterdir()] == ["bundle"]


def test_evaluate(
    run: tuple[Path, subprocess.CompletedProcess[str]], synthetic_checkpoint: Path, corpus: Path, tmp_path: Path
) -> None:
    results: list[dict[str, Any]] = []
    for model in (run[0], synthetic_checkpoint):
        translations = tmp_path / "translations.txt"
        process = dragoman("evaluate", model, f"--data={corpus}", f"--translations={translations}")
        assert process.returncode == 0, process.stderr
        assert process.stderr == ""
        results.append(json.loads(process.stdout))
        assert results[-1]["model"] == str(model)
        assert len(translations.read_text(encoding="utf-8").splitlines()) == 16
    for name in ("sentences", "bleu_signature", "chrf_signature"):
        assert results[0][name] == results[1][name]
    assert results[0]["sentences"] == 16
    assert results[0]["bleu_signature"].startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp")
    corpus.with_name("long.tsv").write_text("a\tein\n" + "a " * 99 + "\tein\n")
    refused = dragoman("evaluate", synthetic_checkpoint, f"--data={corpus.with_name('long.tsv')}")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"dragoman evaluate: {corpus.with_name('long.tsv')}: line 2 has ")
    assert refused.stderr.endswith(" tokens, the model 29 positions\n")


LANGUAGES = "--source-language=en", "--target-language=de"


def test_what_cannot_be_exported(synthetic_checkpoint: Path, tmp_path: Path) -> None:
    """What a user can put right ends in one line on standard error, and exit code 2."""
    # The synthetic model has 29 positions, fewer than the default limits.
    refused = dragoman("export", synthetic_checkpoint, f"--out={tmp_path / 'bundle'}", *LANGUAGES)
    assert refused.stdout == ""
    assert refused.returncode == 2
    assert refused.stderr == "dragoman export: max source tokens: 128 is above the checkpoint's 29 positions\n"
    assert list(tmp_path.iterdir()) == []
