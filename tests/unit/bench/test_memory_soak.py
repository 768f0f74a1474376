import json
from pathlib import Path

import pytest

from bench.memory_soak import FIELDS, SAMPLES, main, summarize

BUNDLE = Path(__file__).parents[3] / "models" / "en-de" / "bundle"


def resident(samples: list[tuple[float, float]]) -> dict[str, float]:
    """What becomes of samples [segments, resident MiB]."""
    return summarize([[*sample, 0.0, 0.0, 0.0] for sample in samples])[0]


def test_growth_counts_after_the_first_tenth_only() -> None:
    figures = resident([(count, 100.0 if count < 10_000 else 150.0) for count in range(1000, 100_001, 1000)])
    assert figures["after_first_tenth"] == 150.0
    assert figures["per_10000_segments"] == pytest.approx(0.0, abs=1e-9)


def test_slope_is_per_10000_segments() -> None:
    figures = resident([(count, 200.0 + count / 1000) for count in range(500, 50_001, 500)])
    assert figures["per_10000_segments"] == pytest.approx(10.0)
    assert figures["after_first_tenth"] == 205.0
    assert figures["largest_after_it"] == figures["at_end"] == 250.0


def test_a_peak_that_went_away_shows_as_the_largest() -> None:
    assert resident([(10, 1.0), (50, 9.0), (100, 2.0)])["largest_after_it"] == 9.0


def test_every_field_has_figures_of_its_own() -> None:
    rows = summarize([[10.0, 1.0, 2.0, 3.0, 4.0], [100.0, 5.0, 6.0, 7.0, 8.0]])
    assert [row["after_first_tenth"] for row in rows] == [1.0, 2.0, 3.0, 4.0]
    assert [row["at_end"] for row in rows] == [5.0, 6.0, 7.0, 8.0]
    assert [row["memory"] for row in rows] == list(FIELDS)


def test_command_decodes_all_segments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "soak.json"
    arguments = ["--bundle", str(BUNDLE), "--segments", str(SAMPLES), "--threads", "2", "--slots", "8"]
    assert main([*arguments, "--json", str(out)]) == 0
    assert "\n| resident_mib |" in capsys.readouterr().out
    report = json.loads(out.read_text())
    assert report["target_tokens"] >= SAMPLES
    assert report["samples"][-1][0] == report["arguments"]["segments"] == SAMPLES
    for row in report["memory"]:
        assert row["largest_after_it"] >= row["after_first_tenth"] > 0


@pytest.mark.parametrize("arguments", [["--segments", "1"], ["--threads", "0"], ["--bundle", "nowhere"]])
def test_bad_arguments_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
