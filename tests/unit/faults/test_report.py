import json
from collections import Counter

from tests.faults import report, trial
from tests.faults.books import Figures
from tests.faults.trial import Finding


def finding(**values) -> Finding:
    load = Figures(sent=5, ok=4, failed=Counter(INTERNAL=1), retried=Counter(LOADING=2))
    return Finding("a-fault", load=load, recovery_s=0.25, seen={"things": 3}, **values)


def cells(findings: list[Finding]) -> dict[str, str]:
    head, _, row = (line.strip("| ").split(" | ") for line in report.to_markdown(findings).splitlines()[:3])
    return dict(zip(head, row, strict=True))


def test_a_row_says_what_was_counted() -> None:
    row = cells([finding()])
    assert (row["fault"], row["kept"], row["load: sent"]) == ("a-fault", "yes", "5")
    assert (row["tried again"], row["recovery s"], row["happened"]) == ("2 LOADING", "0.25", "things: 3")


def test_a_broken_promise_is_named() -> None:
    page = report.to_markdown([finding(broken=["it broke"])])
    assert "| **no** |" in page
    assert "- a-fault: it broke" in page


def test_a_call_without_an_end_counts_as_lost() -> None:
    assert cells([Finding("a-fault", load=Figures(sent=2, ok=1), seen={"things": 1})])["lost"] == "1"


def test_several_findings_of_a_fault_add_up() -> None:
    merged = trial.merge(
        [finding(slots_leaked=2, measured={"s": 1.0}), finding(broken=["it broke"], measured={"s": 2.0})]
    )
    assert (merged.times, merged.load.sent, merged.load.failed, merged.slots_leaked) == (2, 10, {"INTERNAL": 2}, 2)
    assert (merged.seen, merged.measured, merged.broken) == ({"things": 6}, {"s": 2.0}, ["it broke"])


def test_all_of_it_is_data() -> None:
    [data] = json.loads(json.dumps(report.to_json([finding()])))
    assert data["load"]["failed"] == {"INTERNAL": 1}
