"""Does a GPU's memory stay flat? Segments of all lengths through the engine's own decode batch, memory on the way."""

import os
from typing import Final

import numpy as np

from bench.decoding import Batch, Graphs
from bench.frame import Figures
from bench.gpu.libraries import nvidia_smi
from bench.gpu.models import open_bundle
from bench.gpu.task import Task
from bench.memory import growth, resident_mib
from bench.sentences import random_lengths, random_sentences
from service.settings import MEGABYTE

SAMPLES: Final = 20
_SLOTS: Final = 256
_CACHE_MB: Final = 64


def memory(task: Task) -> Figures:
    """Decode random segments, portion after portion; memory in use after each, and how fast it grew."""
    bundle, device, segments = open_bundle(task), task.setup.device, task.setup.segments
    manifest, random = bundle.manifest, np.random.default_rng(0)
    batch = Batch(Graphs.resident(bundle, device), min(_SLOTS, task.setup.most_slots), _CACHE_MB * MEGABYTE)
    rows, portion = list[Figures](), -(-segments // SAMPLES)
    for number in task.rounds(range(1, SAMPLES + 1)):
        lengths = random_lengths(random, portion, manifest.max_source_tokens).tolist()
        limits = random_lengths(random, portion, manifest.max_target_tokens).tolist()
        if number == 1:  # with the longest there are: buffers are as large as they get
            lengths[0], limits[0] = manifest.max_source_tokens, manifest.max_target_tokens
        batch.decode(random_sentences(manifest, lengths, limits, random))
        rows.append({"segments": portion * number, "mib": used_mib(device)})
        task.note({"rows": rows})
    missing = segments - portion * len(rows)
    return {
        "mib_per_10000_segments": growth([row["segments"] for row in rows], [row["mib"] for row in rows], per=10_000),
        "left_out": f"{missing} of {segments} segments" if missing > 0 else None,
        "rows": rows,
    }


def used_mib(device: str) -> float:
    """Measure the mebibytes in use: of the GPU, by any program; or of this process, on a CPU."""
    if device == "cpu":
        return resident_mib(os.getpid())
    return float(nvidia_smi("memory.used")["memory.used"].split()[0])
