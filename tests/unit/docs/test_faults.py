"""docs/faults.md lists the faults that there are, with their promises."""

from pathlib import Path

from tests.faults.registry import FAULTS

PAGE = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")


def test_every_fault_stands_in_the_page_with_its_promise() -> None:
    expected = [f"| `{fault.name}` | {fault.side} | {fault.promise} |" for fault in FAULTS]
    assert [line for line in PAGE.splitlines() if line.startswith("| `")] == expected


def test_faults_have_names_of_their_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
