"""The measurement of large models, on a small one: it runs to its end, and its figures are there."""

import json
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench import large
from bench.cli import main
from bench.large import SHAPES, Shape

SIZES = {"source_vocabulary_size": 300, "target_vocabulary_size": 300, "d_model": 32, "heads": 2, "d_ff": 48}


def test_all_figures_of_a_small_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = dict(SHAPES["nllb-600m"].config) | SIZES | {"encoder_layers": 1, "decoder_layers": 1}
    shape = Shape("opus-mt", config, (4, 2), {"bundle_mb": 110})
    monkeypatch.setattr(large, "SHAPES", {"opus-mt": shape})
    out = tmp_path / "large.json"
    assert main(["large", "--rounds", "1", "--json", str(out)]) == 0
    report = json.loads(out.read_text())["details"]
    [model] = report["costs"]
    assert 0 < model["bundle_mb"] < 5
    assert model["export_peak_mb"] > 100
    assert 0 < model["resident_mb"] <= model["server_peak_mb"]
    assert model["first_answer_s"] > 0
    assert [(one["part"], one["ours"]["name"], one["theirs"]["name"]) for one in report["outcomes"]] == [
        ("offline", "dragoman", "ctranslate2"),
        ("single", "dragoman", "ctranslate2"),
    ]
    assert report["outcomes"][0]["agreement"]["target_tokens"] == [4 * 25, 4 * 25]
    assert "(at most 110)" in capfd.readouterr().out


def test_the_shapes_are_what_they_are_called_after() -> None:
    """Parameters without those of norms and biases, in millions."""
    counts = {}
    for name, shape in SHAPES.items():
        one = shape.config
        layer = 4 * one["d_model"] ** 2 + 2 * one["d_model"] * one["d_ff"]
        layers = one["encoder_layers"] * layer + one["decoder_layers"] * (layer + 4 * one["d_model"] ** 2)
        counts[name] = round((layers + one["target_vocabulary_size"] * one["d_model"]) / 1e6)
    assert counts == {"opus-mt": 74, "nllb-600m": 615}
