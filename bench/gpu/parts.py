"""The parts of `bench.gpu`, and a run of them, one after the other."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from bench.gpu.accuracy import parity, placement
from bench.gpu.libraries import libraries
from bench.gpu.memory import memory
from bench.gpu.models import models
from bench.gpu.process import Function, Outcome, run
from bench.gpu.served import load_test, reload
from bench.gpu.speed import peer, speed
from bench.gpu.steps import bits, graphs, nan
from bench.gpu.task import Setup


class Part(NamedTuple):
    name: str
    function: Function
    share: float  # of the time of the run: the seconds that it may need, beside those of the others
    size: str = "default"

    @property
    def title(self) -> str:
        """Its name, and the size where there are several."""
        return f"{self.name} {self.size}" if self.name in ("models", "speed", "peer") else self.name


LIBRARIES: Final = Part("libraries", libraries, 20)
_CHECKS: Final = (
    Part("graphs", graphs, 30),
    Part("nan", nan, 20),
    Part("placement", placement, 20),
    Part("parity", parity, 50),
    Part("bits", bits, 30),
    Part("memory", memory, 45),
    Part("reload", reload, 60),
    Part("load-test", load_test, 50),
)
_SHARES: Final = {"default": (60, 40, 30), "base": (60, 45, 30), "large": (180, 60, 40)}  # of models, speed, peer


def parts(sizes: Sequence[str], chosen: Sequence[str] | None = None) -> list[Part]:
    """Return the parts of a run after `LIBRARIES`; those of the names in `chosen`, None: all."""
    of_size = {
        size: [
            Part(function.__name__, function, share, size)
            for function, share in zip((models, speed, peer), shares, strict=True)
        ]
        for size, shares in _SHARES.items()
    }
    checked, *timed = of_size["default"]
    ordered = [checked, *_CHECKS, *(timed if "default" in sizes else [])]
    ordered += [part for size in sizes if size != "default" for part in of_size[size]]
    return [part for part in ordered if chosen is None or part.name in chosen]


def names() -> list[str]:
    """Return the names that `chosen` may hold."""
    return [part.name for part in parts(["default"])]


def outcomes(wanted: Sequence[Part], setup: Setup, seconds: float) -> Iterator[tuple[str, Outcome]]:
    """Run parts, and yield the title and outcome of each; what time one leaves over goes to all that follow."""
    for place, part in enumerate(wanted):
        limit_s = seconds * part.share / sum(later.share for later in wanted[place:])
        outcome = run(part.title, part.function, setup, part.size, limit_s)
        seconds = max(seconds - outcome.seconds, 0.0)
        yield part.title, outcome
