"""The parts of `bench.gpu` in the order in which they run, and what each needs."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One part.

    Attributes:
        function: module:name of what it calls with a `Task`; imported in the part's own process.
        share: of the time of the run: the seconds that it may need, beside those of the others.
        needs: without which it cannot run, by `preparations`.
        wants: for which it waits, no more.
        quiet: whether it waits for all that is made, so that nothing runs beside it.
    """

    name: str
    function: str
    share: float
    size: str = "default"
    needs: tuple[str, ...] = ("fp16",)
    wants: tuple[str, ...] = ()
    quiet: bool = False


LIBRARIES = Part("libraries", "bench.gpu.libraries:libraries", 20, needs=())
_CHECKS = (
    Part("encoder", "bench.gpu.encoder:encoder", 25),
    Part("kernels", "bench.gpu.kernels:kernels", 25),
    Part("traces", "bench.gpu.traces:traces", 25),
    Part("graphs", "bench.gpu.steps:graphs", 30),
    Part("nan", "bench.gpu.steps:nan", 20),
    Part("placement", "bench.gpu.accuracy:placement", 20),
    Part("parity", "bench.gpu.accuracy:parity", 50, needs=("fp16", "fp32")),
    Part("bits", "bench.gpu.steps:bits", 30),
)
_LONG = (
    Part("memory", "bench.gpu.memory:memory", 45),
    Part("reload", "bench.gpu.served:reload", 60),
    Part("load-test", "bench.gpu.served:load_test", 50),
)
_SPEED_SHARES = {"default": 50.0, "base": 55.0, "large": 60.0}
# How long a preparation may take, in seconds; it runs beside the parts.
PREPARATION_S = 300.0
_PREPARATIONS = {
    "fp16": "bench.gpu.models:fp16",
    "fp32": "bench.gpu.models:fp32",
    "peer": "bench.gpu.models:peer",
}


def parts(sizes: Sequence[str], chosen: Sequence[str] | None = None) -> list[Part]:
    """Return the parts of a run after `LIBRARIES`.

    Args:
        chosen: names of the parts that are wanted; None: all.
    """
    speed = [
        Part(f"speed {size}", "bench.gpu.speed:speed", _SPEED_SHARES[size], size, wants=("peer",), quiet=True)
        for size in sizes
    ]
    return [part for part in (*_CHECKS, *speed, *_LONG) if chosen is None or part.name.split()[0] in chosen]


def names() -> list[str]:
    """Return the names that `chosen` may hold."""
    return list(dict.fromkeys(part.name.split()[0] for part in parts(["default"])))


def preparations(wanted: Sequence[Part]) -> dict[tuple[str, str], Part]:
    """Return the parts that make the models of other parts, by size and kind, the default model's first."""
    keys = dict.fromkeys((part.size, kind) for part in wanted for kind in (*part.needs, *part.wants))
    return {(size, kind): Part(f"model {size} {kind}", _PREPARATIONS[kind], 0, size, needs=()) for size, kind in keys}
