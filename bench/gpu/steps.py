"""What must not change the tokens that a decoder chooses: CUDA graphs, old numbers in the caches, company."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.decoding import Batch, Graphs
from bench.frame import Figures
from bench.gpu.models import open_bundle
from bench.gpu.task import Task, left_out, slot_counts
from bench.sentences import Sentences, equal_sentences, random_sentences
from dragoman.bundle import Manifest
from plugins.gpu.device import DeviceSlots
from service.decode import Decode
from service.runtime.interfaces import Decoder, Step

SLOTS: Final = 16
CAPACITY: Final = 64  # of the caches, small, so that many rows reach its end
_TOKENS: Final = 12
_COMPANY_TOKENS: Final = 16  # that are decoded of each sentence to compare its logits


def graphs(task: Task) -> Figures:
    """Decode sentences that come and go, up to the last position of the caches, with CUDA graphs and without."""
    bundle, device = open_bundle(task), task.setup.device
    sentences = coming_and_going(bundle.manifest, task.setup.steps)
    recorded = Batch(Graphs.resident(bundle, device).endless(CAPACITY), SLOTS)
    plain = Batch(Graphs.resident(bundle, device, capture=False).endless(CAPACITY), SLOTS)
    share = equal_sentences(recorded.decode(sentences), plain.decode(sentences)) / len(sentences)
    return {
        "steps": float(recorded.steps[0]),
        "sentences": len(sentences),
        "equal_share": share,
        "checks": {"the same tokens with CUDA graphs and without": share == 1.0},
    }


def coming_and_going(manifest: Manifest, steps: int) -> Sentences:
    """Draw sentences with sources of all lengths; one target in four goes up to the end of the caches."""
    random = np.random.default_rng(0)
    limits: list[int] = []
    while sum(limits) < steps * SLOTS:
        limits.append(CAPACITY if len(limits) % 4 == 0 else int(random.integers(1, CAPACITY)))
    tokens = random.integers(1, manifest.max_source_tokens + 1, len(limits))
    return random_sentences(manifest, tokens.tolist(), limits)


def nan(task: Task) -> Figures:
    """Decode the same with caches that hold zeros at first, and with caches full of NaN."""
    bundle, device = open_bundle(task), task.setup.device
    opened = Graphs.resident(bundle, device).endless(CAPACITY)
    sentences = coming_and_going(bundle.manifest, task.setup.steps // 4)
    filled = [replace(opened, decoder=Filled(opened.decoder, number)) for number in (0.0, np.nan)]
    share = equal_sentences(*(Batch(graphs, SLOTS).decode(sentences) for graphs in filled)) / len(sentences)
    return {
        "sentences": len(sentences),
        "equal_share": share,
        "checks": {"numbers that nobody has written are never used": share == 1.0},
    }


class Filled:
    """A decoder whose buffers of keys and values hold one number throughout before they are used."""

    def __init__(self, decoder: Decoder, number: float) -> None:
        self._decoder = decoder
        self._number = number

    def new_step(self, manifest: Manifest, slots: int) -> tuple[Any, Step]:
        table, step = self._decoder.new_step(manifest, slots)
        assert isinstance(table, DeviceSlots)
        for buffer in (*table.caches.values(), *table.memory.values()):
            buffer.value.update_inplace(np.full(buffer.shape, self._number, buffer.dtype))
        return table, step

    def close(self) -> None:
        self._decoder.close()


def bits(task: Task) -> Figures:
    """Decode one sentence in the company of others, in 1, 2, 4, ... slots: which logits differ from those alone?"""
    bundle, device = open_bundle(task), task.setup.device
    opened, rows = Graphs.resident(bundle, device).endless(), list[Figures]()
    alone, alone_ids = _watched(opened, 1)
    counts = slot_counts(task.setup.most_slots)
    for slots in task.rounds(counts):
        logits, ids = _watched(opened, slots)
        rows.append({"slots": slots, **compare(alone, logits), "same_ids": ids == alone_ids})
        task.note({"rows": rows})
    checks = {"the same tokens in any company": all(row["same_ids"] for row in rows)}
    return {"rows": rows, "left_out": left_out("slots", counts[len(rows) :]), "checks": checks}


def _watched(opened: Graphs, slots: int) -> tuple[NDArray[np.floating], list[int]]:
    """Decode a sentence a slot; gives the logits [steps, vocabulary] and ids of the first sentence."""
    company = random_sentences(opened.manifest, [_TOKENS] * slots, [_COMPANY_TOKENS] * slots)
    batch, seen = Batch(opened, slots), list[NDArray[np.floating]]()

    def watch(decode: Decode, logits: NDArray[np.floating]) -> None:
        if decode.source_ids is company.sources[0]:
            seen.append(logits.copy())

    ids = batch.decode_watched(company, watch)
    return np.stack(seen), ids[0]


def compare(alone: NDArray[np.floating], company: NDArray[np.floating]) -> Figures:
    """Count how many logits differ in bits, of how many, and by how much at most."""
    one, other = alone.astype(np.float64), company.astype(np.float64)
    return {
        "logits": alone.size,
        "different": int((one != other).sum()),
        "largest_difference": float(np.abs(one - other).max()),
    }
