from dataclasses import replace

from bench.compare.outcome import Outcome, Side, Trial, figures, row
from bench.frame import table

OFFLINE = Outcome(
    model="default",
    part="offline",
    unit="sentences/s",
    higher_is_better=True,
    ours=Side(
        "dragoman",
        "int8",
        {"threads": 2, "slots": 32},
        [Trial({"threads": 2, "slots": 32}, 3000.0)],
        [3000.0, 3100.0, 2900.0],
    ),
    theirs=Side("ctranslate2", "int8", {"inter_threads": 2}, [Trial({"inter_threads": 2}, 2000.0)], [2000.0] * 3),
    sentences=4,
    equal=3,
    target_tokens=(1000, 1001),
    bleu=(43.46, 43.5),
)
SINGLE = Outcome(
    model="base",
    part="single",
    unit="ms",
    higher_is_better=False,
    ours=Side("dragoman", "int8", {"threads": 1}, [], [2.0, 2.0, 4.0]),
    theirs=Side("ctranslate2", "fp32", {}, [], [8.0, 4.0, 8.0]),
    sentences=4,
)


def test_ratio_is_taken_round_by_round() -> None:
    # The machine was half as fast in the last round, for both: the ratio does not see it.
    ours, theirs = replace(OFFLINE.ours, figures=[10.0, 12.0, 5.0]), replace(OFFLINE.theirs, figures=[10.0, 10.0, 5.0])
    ratio = replace(OFFLINE, ours=ours, theirs=theirs).ratio
    assert (ratio.median, ratio.low, ratio.high) == (1.0, 1.0, 1.2)
    assert str(ratio) == "1.00 (1.00 to 1.20)"


def test_table_has_a_row_an_outcome_with_medians_and_ratios() -> None:
    offline, single = table([row(OFFLINE), row(SINGLE)])[2:]
    assert offline == (
        "| default | offline | sentences/s, higher is better | int8: 3000 | ctranslate2 int8: 2000 "
        "| 1.50 (1.45 to 1.55) | 75%, 1,000 and 1,001 | 43.5 and 43.5 | threads=2 slots=32; inter_threads=2 |"
    )
    assert "| ms, lower is better | int8: 2 | ctranslate2 fp32: 8 | 0.50 (0.25 to 0.50) | - | - |" in single


def test_figures_say_where_and_have_every_round_and_every_setting() -> None:
    found = figures([OFFLINE])
    assert " cores of " in found["machine"]
    assert "dragoman" in found["versions"]
    [outcome] = found["details"]
    assert outcome["ours"]["figures"] == [3000.0, 3100.0, 2900.0]
    assert outcome["ours"]["sweep"] == [{"settings": {"threads": 2, "slots": 32}, "figure": 3000.0}]
    assert outcome["ratio"] == {"median": 1.5, "low": 1.45, "high": 1.55}
