"""Targets that a run is held to, for use in CI: which there are, how they are written, which were missed. Pure."""

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench.arguments import not_negative


class Measure(NamedTuple):
    """A figure that can be a target."""

    field: str
    at_most: bool
    of_ramp: bool = False  # whether a ramp has it, and not a run at one rate


MEASURES: dict[str, Measure] = {
    **{f"{name}_ms": Measure(f"{name}_e2el_ms", True) for name in ("mean", "p50", "p90", "p95", "p99", "max")},
    "first_text_p95_ms": Measure("p95_ttft_ms", True),
    "error_rate": Measure("error_rate", True),
    "goodput": Measure("request_goodput", False),
    "throughput": Measure("request_throughput", False),
    "rate": Measure("highest_rate", False, of_ramp=True),
}


@dataclass(frozen=True)
class Target:
    name: str
    value: float

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read `NAME=VALUE`; raises an ArgumentTypeError, of one line, where it is none."""
        name, equals, value = text.partition("=")
        if not equals or name not in MEASURES:
            raise ArgumentTypeError(f"{text!r} is not NAME=VALUE with one of {', '.join(MEASURES)}")
        try:
            return cls(name, not_negative(value))
        except ArgumentTypeError as error:
            raise ArgumentTypeError(f"{name} must be a number from 0 on, not {value!r}") from error

    def __str__(self) -> str:
        return f"{self.name}={self.value:g}"

    @property
    def measure(self) -> Measure:
        """What is held to the value."""
        return MEASURES[self.name]


def judge(report: Mapping[str, Any], targets: Sequence[Target]) -> list[dict[str, Any]]:
    """Compare each target with what was measured; what was not measured is a miss."""
    verdicts = []
    for target in targets:
        measured, at_most = report.get(target.measure.field), target.measure.at_most
        met = measured is not None and (measured <= target.value if at_most else measured >= target.value)
        verdict = {"name": target.name, "at_most": at_most, "target": target.value, "measured": measured, "met": met}
        verdicts.append(verdict)
    return verdicts


def to_line(verdict: Mapping[str, Any]) -> str:
    measured = "nothing was measured" if verdict["measured"] is None else f"{verdict['measured']:.6g}"
    bound = "at most" if verdict["at_most"] else "at least"
    return f"{'met' if verdict['met'] else 'missed'}: {verdict['name']} {measured}, {bound} {verdict['target']:g}"
