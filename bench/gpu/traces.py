"""The GPU's own kernels, one by one, as torch's profiler sees them: onnxruntime's wheel cannot follow them itself."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

from bench.decoding import Batch, Graphs
from bench.frame import Figures
from bench.gpu.models import open_bundle
from bench.gpu.task import Task
from bench.sentences import random_sentences
from plugins.gpu.device import DeviceEncoder

TOKENS: Final = 12
TARGET_TOKENS: Final = 4  # of which the first two steps are of the warm-up


def traces(task: Task) -> Figures:
    """List the kernels of one encoder run, and of a few steps without CUDA graphs, a row for each slot of a server."""
    bundle, device, slots = open_bundle(task), task.setup.device, task.setup.served_slots
    sentences = random_sentences(bundle.manifest, [TOKENS] * slots, [TARGET_TOKENS] * slots)
    encoder = DeviceEncoder(bundle, device)
    batch = Batch(Graphs.resident(bundle, device, capture=False).endless(), slots)
    runs: dict[str, Callable[[], object]] = {
        "encoder": lambda: encoder.encode(sentences.sources[:32]),
        "encoder and decoder": lambda: batch.decode(sentences),
    }
    return {"rows": [row for name, run in runs.items() for row in _rows(name, _kernels(run))]}


def _kernels(run: Callable[[], object]) -> list[tuple[str, float]]:
    """Return names and microseconds of all kernels of a second run; none where there is no GPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    run()  # the first time chooses kernels and reserves memory
    if not torch.cuda.is_available():
        return []
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        run()
    on_gpu = [event for event in profiler.events() if event.device_type.name == "CUDA"]
    return [(event.name, event.time_range.elapsed_us()) for event in on_gpu]


def _rows(graph: str, kernels: list[tuple[str, float]]) -> list[Figures]:
    calls, us = Counter(name for name, _ in kernels), defaultdict[str, float](float)
    for name, each_us in kernels:
        us[name] += each_us
    return [
        {"graph": graph, "kernel": name, "calls": calls[name], "us": us[name]}
        for name in sorted(us, key=lambda name: -us[name])
    ]
