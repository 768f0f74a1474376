"""Whether padding changes what the encoder makes of a source, with each of the kernels that onnxruntime may choose."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from bench.gpu.models import open_bundle
from bench.gpu.setup import Figures, Task
from bench.sentences import random_sentences
from dragoman.bundle import ENCODER, MEMORY, WEIGHTS
from service.runtime.binding import encoder_feeds
from service.runtime.sessions import open_graph, open_session
from service.runtime.weights import Weights

SHORT, LONG = 3, 30
# Of the largest number of a memory: half precision has 11 bits, and there are some layers.
TOLERANCE: Final = 1e-2
# `AttentionBackend` of onnxruntime: MATH is what is served.
_KERNELS: Final = {"unset": {}, "16 (MATH)": {"sdpa_kernel": "16"}, "1 (FLASH)": {"sdpa_kernel": "1"}}


def encoder(task: Task) -> Figures:
    """Encode a short source alone and beside a long one; the largest difference, by `sdpa_kernel`."""
    bundle, device = open_bundle(task), task.setup.device
    sources = random_sentences(bundle.manifest, [SHORT, min(LONG, bundle.manifest.max_source_tokens)], [1, 1]).sources
    served = padding_difference(open_graph(bundle, ENCODER, device), sources)
    figures: Figures = {"rows": [_row("as served", *served)]}
    for name, options in _KERNELS.items():
        task.note(figures)
        with bundle.mapped(WEIGHTS) as weights:
            graph = bundle.graph(ENCODER)
            session = open_session(*graph, device, weights=Weights(weights), cuda_options=options)
        figures["rows"].append(_row(name, *padding_difference(session, sources)))
    return figures | {"checks": {"as served, padding changes nothing": max(served) < TOLERANCE}}


def _row(kernel: str, short: float, long: float) -> Figures:
    return {"sdpa_kernel": kernel, "short_source": short, "long_source": long}


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
