"""Computed tables of a Transformer, of positions and of distances, in NumPy, for code without torch."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def sinusoids(positions: int, d_model: int, kind: str) -> NDArray[np.float32]:
    """Compute the sines and cosines of section 3.5 of arXiv:1706.03762.

    Args:
        positions: the number of rows of the table.
        d_model: the width of a row, even.
        kind: "sinusoidal", alternating sines and cosines (the paper); "sinusoidal_halves", all sines, then all cosines,
            with the wavelengths of tensor2tensor (also Marian, fairseq, M2M100); "sinusoidal_paper_halves", the same
            with the wavelengths of the paper (Hugging Face's MarianMTModel).

    Returns:
        float32 [positions, d_model].
    """
    half = d_model // 2
    exponent = np.arange(half, dtype=np.float64)
    # tensor2tensor divides by half - 1, so that the last wavelength is exactly 10,000.
    exponent = exponent / (half - 1) if kind == "sinusoidal_halves" and half > 1 else exponent * 2 / d_model
    angles = np.arange(positions, dtype=np.float64)[:, None] * np.exp(-math.log(10_000.0) * exponent)
    sine, cosine = np.sin(angles), np.cos(angles)
    in_turn = kind == "sinusoidal"
    table = np.stack([sine, cosine], 2).reshape(positions, -1) if in_turn else np.concatenate([sine, cosine], 1)
    return table.astype(np.float32)


def buckets(distances: NDArray[Any], count: int, max_distance: int, *, causal: bool) -> NDArray[np.int64]:
    """Map distances to buckets, as in T5 (arXiv:1910.10683): one for each small distance, wider ones above.

    Args:
        distances: int64, position of the key minus position of the query.
        count: the number of buckets, at least 4.
        max_distance: from this distance on, all share the last bucket.
        causal: whether all keys precede their query; if not, half of the buckets are for keys after it.

    Returns:
        int64 of the same shape, in [0, count).
    """
    behind = np.zeros_like(distances)
    if not causal:
        count //= 2
        behind = (distances > 0) * count
    far = -np.minimum(distances, 0) if causal else np.abs(distances)
    exact = count // 2
    # In fp32 and in this order, as in T5: some distances lie on the border of two buckets.
    octaves = np.log(np.maximum(far, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        math.log(max_distance / exact)
    )
    wide = np.minimum(exact + (octaves * np.float32(count - exact)).astype(np.int64), count - 1)
    found: NDArray[np.int64] = behind + np.where(far < exact, far, wide)
    return found
