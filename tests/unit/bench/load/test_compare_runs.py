import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.load.command import main
from bench.load.compare_runs import to_text
from bench.load.comparison import SAME, compare, conclusion, different_settings
from bench.load.page import compare_page


def run(p95_ms: float = 20.0, rate: float = 100.0, **settings: object) -> dict[str, object]:
    return {
        "settings": {"rate": 100.0, "json": "somewhere", **settings},
        "environment": {"cores": 2},
        "completed": 100,
        "mode": "open",
        "p95_e2el_ms": p95_ms,
        "request_throughput": rate,
        "error_rate": 0.0,
        "latency_quantiles": [[0.0, 1.0], [50.0, 10.0], [95.0, p95_ms]],
        "timeline": {"bin_s": 1.0, "t_s": [0.0, 1.0], "p95_ms": [p95_ms, None]},
    }


def verdicts(before: dict[str, object], after: dict[str, object]) -> dict[str, str]:
    return {row.name: row.verdict for row in compare(before, after)}


def test_figures_are_judged_by_their_direction() -> None:
    assert verdicts(run(), run(p95_ms=30.0, rate=150.0)) == {
        "latency p95": "worse",
        "achieved rate": "better",
        "not answered": "same",
    }
    assert compare(run(), run(p95_ms=30.0))[0].ratio == 1.5
    assert verdicts(run(), run() | {"error_rate": 0.1})["not answered"] == "worse"


@given(st.floats(0.1, 1e4), st.floats(1 / (1 + SAME) + 1e-9, 1 + SAME - 1e-9))
def test_small_differences_are_none(p95_ms: float, ratio: float) -> None:
    assert verdicts(run(p95_ms), run(p95_ms * ratio))["latency p95"] == "same"


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4))
def test_the_other_way_round_the_verdict_is_the_opposite(one_ms: float, other_ms: float) -> None:
    opposite = {"better": "worse", "worse": "better", "same": "same"}
    one, other = run(one_ms), run(other_ms)
    assert verdicts(one, other)["latency p95"] == opposite[verdicts(other, one)["latency p95"]]


def test_what_else_differs_is_named() -> None:
    other = run(stream=True) | {"environment": {"cores": 4}}
    other["settings"] = {**other["settings"], "json": "elsewhere"}  # type: ignore[dict-item]
    assert different_settings(run(), other) == [("stream", None, True), ("cores", 2, 4)]


def test_the_conclusion_is_one_sentence() -> None:
    assert conclusion(compare(run(), run())) == "The second run is the same within 5%."
    both = conclusion(compare(run(), run(p95_ms=30.0, rate=150.0)))
    assert both == "The second run is better in achieved rate; worse in latency p95."


@pytest.mark.parametrize("mode", ["open", "ramp"])
def test_a_closed_loop_is_compared_with_no_other(mode: str) -> None:
    closed, other = run() | {"mode": "closed"}, run(p95_ms=30.0) | {"mode": mode}
    for rows in (compare(closed, other), compare(other, closed)):
        assert {(row.ratio, row.verdict) for row in rows} == {(None, "not comparable")}
        assert conclusion(rows).startswith("One run is a closed loop and the other is not")
    assert {row.verdict for row in compare(closed, closed)} == {"same"}
    assert "worse" not in (text := to_text(closed, other))
    assert "20          30       -  not comparable" in text
    page = compare_page(("a", "b"), closed | {"timeline": other["timeline"]}, other)
    assert 'class="badge plain">not comparable<' in page
    assert 'class="bad"' not in page


def test_a_ramp_is_compared_with_an_open_loop() -> None:
    assert verdicts(run() | {"mode": "ramp"}, run(p95_ms=30.0))["latency p95"] == "worse"


def test_command_prints_a_table_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "a<b>.json", tmp_path / "b.json"]
    for path, report in zip(paths, (run(), run(p95_ms=30.0, stream=True)), strict=True):
        path.write_text(json.dumps(report))
    page = tmp_path / "page.html"
    assert main(["compare", *map(str, paths), "--html", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "latency p95, ms                     20          30    1.50  worse" in printed
    assert "not alike: stream: None and True" in printed
    html = page.read_text()
    assert html.count("<svg") == 2
    assert "a&lt;b&gt;.json" in html


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": {}, "completed": 1}'])
def test_a_file_that_is_no_report_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(SystemExit) as exit_info:
        main(["compare", str(path), str(path)])
    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("dragoman load-test compare: ")
    assert error.count("\n") == 1
