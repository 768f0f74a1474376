import json
from pathlib import Path

import numpy as np
import pytest

from bench.memory_soak import SAMPLES, _lengths, _segments, main, rss_mib, summarize
from dragoman.bundle import Bundle

BUNDLE = Path(__file__).parents[3] / "models" / "en-de" / "bundle"


def test_growth_counts_after_the_first_tenth_only() -> None:
    samples = [(count, 100.0 if count < 10_000 else 150.0) for count in range(1000, 100_001, 1000)]
    figures = summarize(samples)
    assert figures["rss_after_first_tenth_mib"] == 150.0
    assert figures["slope_mib_per_10000_segments"] == pytest.approx(0.0, abs=1e-9)


def test_slope_is_per_10000_segments() -> None:
    figures = summarize([(count, 200.0 + count / 1000) for count in range(500, 50_001, 500)])
    assert figures["slope_mib_per_10000_segments"] == pytest.approx(10.0)
    assert figures["rss_after_first_tenth_mib"] == 205.0
    assert figures["rss_max_after_it_mib"] == figures["rss_at_end_mib"] == 250.0


def test_a_peak_that_went_away_shows_as_the_largest() -> None:
    assert summarize([(10, 1.0), (50, 9.0), (100, 2.0)])["rss_max_after_it_mib"] == 9.0


def test_lengths_are_spread_up_to_the_limit() -> None:
    lengths = _lengths(np.random.default_rng(0), 20_000, 128)
    assert (lengths.min(), lengths.max()) == (1, 128)
    assert 8 <= np.median(lengths) <= 10


def test_segments_are_all_different_and_fit_the_model() -> None:
    manifest = Bundle.open(BUNDLE).manifest
    segments = list(_segments(manifest, np.random.default_rng(0), 2000))
    assert max(len(segment.source_ids) for segment in segments) <= manifest.max_source_tokens
    assert {segment.source_ids[-1] for segment in segments} == {manifest.eos_id}
    longer = [tuple(segment.source_ids) for segment in segments if len(segment.source_ids) > 4]
    assert len(set(longer)) == len(longer)


def test_resident_size_sees_what_is_written() -> None:
    before_mib = rss_mib()
    written = np.ones(512 * 2**20, np.uint8)
    assert rss_mib() - before_mib > 256  # what else is given back meanwhile is less
    assert written[0] == 1


def test_command_decodes_all_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "soak.json"
    arguments = ["--bundle", str(BUNDLE), "--segments", str(SAMPLES), "--threads", "2", "--slots", "8"]
    assert main([*arguments, "--json", str(out)]) == 0
    assert "RSS after first tenth" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["target_tokens"] >= SAMPLES
    assert report["samples"][-1]["segments"] == report["segments"] == SAMPLES
    assert report["rss_max_after_it_mib"] >= report["rss_after_first_tenth_mib"] > 0


@pytest.mark.parametrize("arguments", [["--segments", "1"], ["--threads", "0"], ["--bundle", "nowhere"]])
def test_bad_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
