"""The findings as a table for people and as data for programs."""

from collections.abc import Sequence
from typing import Any

from tests.faults.books import Figures
from tests.faults.trial import Finding

_HEAD = (
    *(
        "fault",
        "times",
        "kept",
        "load: sent",
        "OK",
        "failed",
        "tried again",
        "its own: sent",
        "OK",
        "failed",
        "lost",
        "wrong",
    ),
    *("slots leaked", "queue left", "recovery s", "RSS MiB", "descriptors", "happened"),
)


def to_markdown(findings: Sequence[Finding]) -> str:
    """One row a fault."""
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, findings)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    broken = [f"- {finding.name}: {what}" for finding in findings for what in finding.broken]
    return "\n".join([*lines, "", *(["Promises that were not kept:", "", *broken] if broken else ["All were kept."])])


def to_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """All figures."""
    return [
        vars(finding) | {"load": _plain(finding.load), "hit": _plain(finding.hit)} | {"kept": not finding.broken}
        for finding in findings
    ]


def _plain(figures: Figures) -> dict[str, Any]:
    return vars(figures) | {"failed": dict(figures.failed), "retried": dict(figures.retried)}


def memory_text(memory: dict[str, float]) -> str:
    """How the memory of the server that lived from the beginning to the end went on, in a line."""
    return (
        "The lasting server, once warm: {resident_mib_when_warm:.1f} MiB resident, at the end "
        "{resident_mib_at_end:.1f} ({mib_a_minute:+.2f} MiB a minute); descriptors "
        "{descriptors_when_warm:.0f}, at the end {descriptors_at_end:.0f}.".format_map(memory)
    )


def _row(finding: Finding) -> tuple[str, ...]:
    if finding.skipped:
        return (finding.name, "0", f"skipped: {finding.skipped}", *[""] * (len(_HEAD) - 3))
    load, hit = finding.load, finding.hit
    both = load + hit
    return (
        finding.name,
        str(finding.times),
        "**no**" if finding.broken else "yes",
        *_counts(load),
        _reasons(load.retried),
        *_counts(hit),
        str(both.lost + both.open),
        str(both.wrong),
        f"{finding.slots_leaked:g}",
        f"{finding.queue_left:g}",
        f"{finding.recovery_s:.2f}",
        "{:.0f} → {:.0f}".format(*finding.resident_mib),
        "{} → {}".format(*finding.descriptors),
        "; ".join(f"{what}: {count:g}" for what, count in (finding.seen | finding.measured).items()),
    )


def _counts(figures: Figures) -> tuple[str, str, str]:
    return str(figures.sent), str(figures.ok), _reasons(figures.failed)


def _reasons(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counts.items())) or "0"
