"""Whether padding changes what the encoder makes of a source."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bench.frame import Figures
from bench.gpu.models import open_bundle
from bench.gpu.task import Task
from bench.sentences import random_sentences
from dragoman.bundle import ENCODER, MEMORY
from plugins.gpu.sessions import open_graph
from service.runtime.binding import encoder_feeds

SHORT, LONG = 3, 30
# Of the largest number of a memory: half precision has 11 bits, and there are some layers.
TOLERANCE: Final = 1e-2


def encoder(task: Task) -> Figures:
    """Encode a short source alone and beside a long one; the largest difference of each."""
    bundle = open_bundle(task)
    sources = random_sentences(bundle.manifest, [SHORT, min(LONG, bundle.manifest.max_source_tokens)], [1, 1]).sources
    short, long = padding_difference(open_graph(bundle, ENCODER, task.setup.device), sources)
    checks = {"padding changes nothing": max(short, long) < TOLERANCE}
    return {"short_source": short, "long_source": long, "checks": checks}


def padding_difference(session: onnxruntime.InferenceSession, sources: Sequence[list[int]]) -> list[float]:
    """Return for each source how much its memory differs alone and beside the others, see `difference`."""

    def encode(sources: Sequence[list[int]]) -> list[NDArray[np.floating]]:
        [memory] = session.run([MEMORY], encoder_feeds(sources, 0))
        return [memory[row, : len(ids)] for row, ids in enumerate(sources)]

    return [
        difference(encode([source])[0], together) for source, together in zip(sources, encode(sources), strict=True)
    ]


def difference(expected: NDArray[np.floating], actual: NDArray[np.floating]) -> float:
    """Return the largest difference over the largest number; infinite where one of them is no number."""
    one, other = expected.astype(np.float64), actual.astype(np.float64)
    found = float(np.abs(one - other).max() / np.abs(one).max())
    return found if np.isfinite(found) else float("inf")
