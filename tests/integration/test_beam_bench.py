"""The measurement of beam search, on a small model and on a few sentences: it runs to its end."""

import json
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.beam import __main__ as beam
from bench.compare import inprocess
from bench.peers import random_model

REPOSITORY = Path(__file__).parents[2]
PAIRS = REPOSITORY / "tests" / "data" / "en-de.tsv"
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
    monkeypatch.setattr(random_model, "BASE", random_model.BASE | SMALL)
    out = tmp_path / "beam.json"
    command = ["--shapes", "base", "--sentences", "5", "--rounds", "1", "--quick", "--slots", "8", "--json", str(out)]
    assert beam.main(command) == 0
    report = json.loads(out.read_text())
    assert [one["model"] for one in report["outcomes"]] == ["base, beam 1", "base, beam 2", "base, beam 4"]
    for search, outcome in zip(report["searches"], report["outcomes"], strict=True):
        assert outcome["agreement"]["target_tokens"] == [5 * 25, 5 * 25]
        assert outcome["settings"][0]["slots"] == 8
        assert min(min(figures) for figures in outcome["figures"]) > 0
        assert search["bleu"] == [None, None]


def test_the_default_model_has_bleu_of_both_sides(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sacrebleu", reason='needs the extra "train"')
    out, table, data = tmp_path / "beam.json", tmp_path / "beam.md", tmp_path / "data.tsv"
    without_reference = "How are you?\ttoo\tmany\n"
    data.write_text("".join([without_reference, *PAIRS.read_text(encoding="utf-8").splitlines(keepends=True)[:12]]))
    command = ["--shapes", "default", "--data", str(data), "--model-folder", str(REPOSITORY / "models" / "en-de")]
    command += ["--beam-sizes", "4", "--rounds", "1", "--quick", "--slots", "16"]
    command += ["--json", str(out), "--markdown", str(table)]
    assert beam.main(command) == 0
    report = json.loads(out.read_text())
    [search], [outcome] = report["searches"], report["outcomes"]
    assert (search["shape"], search["beam_size"], search["sentences"]) == ("default", 4, 12)
    assert min(search["bleu"]) > 20
    assert outcome["agreement"]["equal"] >= 6
    assert table.read_text() == capfd.readouterr().out
