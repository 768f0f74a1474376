from dataclasses import replace

import pytest

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.beam.measure import Found
from bench.beam.report import as_dict, as_markdown
from bench.compare.inprocess import Agreement, Outcome

OUTCOME = Outcome(
    model="default, beam 1",
    part="offline",
    unit="sentences/s",
    higher_is_better=True,
    names=("dragoman", "ctranslate2"),
    precisions=("int8", "int8"),
    settings=({"threads": 2, "slots": 32}, {"inter_threads": 2}),
    sweeps=([], []),
    figures=([2000.0, 1900.0, 2100.0], [1000.0, 1000.0, 1000.0]),
    agreement=Agreement(sentences=4, equal=3, target_tokens=(40, 41)),
)
GREEDY = Found("default", 1, 4, OUTCOME, (43.456, 43.5))
BEAM = Found("default", 4, 4, replace(OUTCOME, figures=([1000.0] * 3, [250.0] * 3)), (44.0, None))


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_has_both_sides_ours_first() -> None:
    first, _, head, rule, greedy, beam = as_markdown([GREEDY, BEAM]).splitlines()
    assert " cores of " in first
    assert len(cells(head)) == len(cells(rule)) == len(cells(greedy)) == len(cells(beam))
    assert cells(greedy) == [
        "default",
        "4",
        "1",
        "2000",
        "1000",
        "2.00 (1.90 to 2.10)",
        "10.00, 10.25",
        "75%",
        "1.00, 1.00",
        "43.46, 43.50",
        "threads=2 slots=32; inter_threads=2",
    ]
    assert cells(beam)[2:6] == ["4", "1000", "250", "4.00 (4.00 to 4.00)"]
    assert cells(beam)[8:10] == ["0.50, 0.25", "44.00, -"]


def test_greedy_of_another_shape_is_no_measure() -> None:
    [row] = as_markdown([GREEDY, replace(BEAM, shape="base")]).splitlines()[5:]
    assert cells(row)[8] == "-"


def test_json_has_every_search_beside_its_outcome() -> None:
    report = as_dict([GREEDY, BEAM], {"rounds": 3})
    assert report["arguments"] == {"rounds": 3}
    assert [one["figures"] for one in report["outcomes"]] == [OUTCOME.figures, BEAM.outcome.figures]
    assert report["searches"][1] == {"shape": "default", "beam_size": 4, "sentences": 4, "bleu": (44.0, None)}
