from dataclasses import replace

from bench.terms.measure import Found, Way
from bench.terms.report import as_dict, as_markdown

PLAIN = Found(2, Way(4, constrained=False), 200, 20, 4, 0, None, [2.0, 1.0])
CONSTRAINED = Found(2, Way(4, constrained=True), 200, 199, 8, 1, 45.678, [3.0])


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_has_shares_and_the_least_time() -> None:
    first, _, head, rule, plain, constrained = as_markdown([PLAIN, CONSTRAINED]).splitlines()
    assert " cores of " in first
    assert len(cells(head)) == len(cells(rule)) == len(cells(plain))
    assert cells(plain) == ["2", "200", "beam 4", "10.0%", "-", "1.0%", "-", "5.00"]
    assert cells(constrained) == ["2", "200", "constrained beam 4", "99.5%", "1", "2.0%", "45.68", "15.00"]


def test_json_has_every_round() -> None:
    report = as_dict([PLAIN], {"rounds": 2})
    assert report["arguments"] == {"rounds": 2}
    assert report["found"][0]["seconds"] == [2.0, 1.0]
    assert report["found"][0]["way"] == "beam 4"
    assert str(Way(1, constrained=False)) == "greedy"
    assert str(Way(4, constrained=True, as_glossary=True)) == "glossary, beam 4"


def test_terms_that_do_not_fit_are_marked() -> None:
    *_, row = as_markdown([replace(CONSTRAINED, fits=False)]).splitlines()
    assert cells(row)[0] == "2, unfit"
