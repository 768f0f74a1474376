"""A whole run of `bench.gpu`: the models are made in processes beside it, the parts run one after another."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.gpu.budget import Clock, limit_s
from bench.gpu.parts import LIBRARIES, PREPARATION_S, Part, preparations
from bench.gpu.report import Report
from bench.gpu.runner import Outcome, Process

Say = Callable[[str, Outcome], None]
_WAITED = 0.3  # of the time that is left: for the models of a part


class MissingDeviceError(Exception):
    """Nothing can run on the device; the message says why, in one line."""


def run(parts: Sequence[Part], setup: Path, seconds: float, report: Report, say: Say) -> None:
    """Run the parts within a time, each within its share of what is left.

    Raises:
        MissingDeviceError: nothing can run on the device.
    """
    clock = Clock.of(seconds)

    def add(name: str, outcome: Outcome) -> None:
        report.add(name, outcome)
        say(name, outcome)

    found = _run(LIBRARIES, limit_s(clock.left_s, [part.share for part in (LIBRARIES, *parts)]), setup)
    if reason := found.figures.get("missing"):
        raise MissingDeviceError(reason)
    add(LIBRARIES.name, found)
    models = Models(parts, setup)
    try:
        for place, part in enumerate(parts):
            missing = models.wait(part, clock.left_s * _WAITED)
            seconds = limit_s(clock.left_s, [later.share for later in parts[place:]])
            add(part.name, Outcome(0.0, missing, {}) if missing else _run(part, seconds, setup))
    finally:
        for name, outcome in models.end().items():
            add(name, outcome)


def _run(part: Part, seconds: float, setup: Path) -> Outcome:
    process = Process(part.name, part.function, part.size, seconds, setup)
    try:
        process.wait()
    finally:
        outcome = process.end()
    return outcome


class Models:
    def __init__(self, parts: Sequence[Part], setup: Path) -> None:
        self._made = {
            key: (part.name, Process(part.name, part.function, part.size, PREPARATION_S, setup))
            for key, part in preparations(parts).items()
        }
        self._outcomes: dict[tuple[str, str], Outcome] = {}

    def wait(self, part: Part, seconds: float) -> str | None:
        """Wait for the models of a part; says why it cannot run, in one line, and None where it can."""
        clock = Clock.of(seconds)
        for key in self._made if part.quiet else [(part.size, kind) for kind in (*part.needs, *part.wants)]:
            if key not in self._outcomes and self._made[key][1].wait(max(clock.left_s, 0.0)):
                self._outcomes[key] = self._made[key][1].end()
        for key in ((part.size, kind) for kind in part.needs):
            error = self._outcomes[key].error if key in self._outcomes else "was not made in time"
            if error:
                return f"{self._made[key][0]}: {error}"
        return None

    def end(self) -> Mapping[str, Outcome]:
        """End what is still made; what became of all, by name."""
        for key, (_, process) in self._made.items():
            if key not in self._outcomes:
                self._outcomes[key] = process.end()
        return {name: self._outcomes[key] for key, (name, _) in self._made.items()}
