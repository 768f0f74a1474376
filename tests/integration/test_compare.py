"""The comparison in process, on a small model and on a few sentences: greedily and with a beam, it runs to its end."""

import json
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.cli import main
from bench.compare import inprocess
from bench.peers import random_model

REPOSITORY = Path(__file__).parents[2]
PAIRS = REPOSITORY / "tests" / "data" / "en-de.tsv"
OFFLINE = ["--parts", "offline", "--rounds", "1", "--quick"]
SMALL = {
    "source_vocabulary_size": 300,
    "target_vocabulary_size": 300,
    "d_model": 32,
    "heads": 2,
    "d_ff": 48,
    "encoder_layers": 1,
    "decoder_layers": 1,
}


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "PAUSE_S", 0.0)


def test_random_weights_are_searched_to_the_limit_by_both(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Greedily and with a beam: no hypothesis of either side ends by itself."""
    monkeypatch.setitem(random_model.SHAPES, "base", random_model.SHAPES["base"] | SMALL)
    out = tmp_path / "compare.json"
    arguments = ["--models", "base", *OFFLINE, "--beam-sizes", "1,2,4", "--json", str(out)]
    assert main(["compare", *arguments]) == 0
    outcomes = json.loads(out.read_text())["details"]
    assert [one["model"] for one in outcomes] == ["base", "base, beam 2", "base, beam 4"]
    for outcome in outcomes:
        assert outcome["target_tokens"] == [outcome["sentences"] * 25] * 2
        assert min(*outcome["ours"]["figures"], *outcome["theirs"]["figures"]) > 0
        assert outcome["bleu"] == [None, None]


def test_the_default_model_has_bleu_of_both_sides(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sacrebleu", reason='needs the extra "train"')
    out, data = tmp_path / "compare.json", tmp_path / "data.tsv"
    without_reference = "How are you?\ttoo\tmany\n"
    data.write_text("".join([*PAIRS.read_text(encoding="utf-8").splitlines(keepends=True)[:12], without_reference]))
    arguments = ["--models", "default", "--data", str(data), "--model-folder", str(REPOSITORY / "models" / "en-de")]
    arguments += [*OFFLINE, "--beam-sizes", "4", "--json", str(out)]
    assert main(["compare", *arguments]) == 0
    [outcome] = json.loads(out.read_text())["details"]
    assert (outcome["model"], outcome["sentences"]) == ("default, beam 4", 13)
    assert min(outcome["bleu"]) > 20
    assert outcome["equal"] >= 6
    assert "| default, beam 4 | offline |" in capfd.readouterr().out
