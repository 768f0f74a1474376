"""8-bit products whose result for a row does not depend on the rows beside it.

Weights: symmetric, one scale an output column. Activations: one calibrated scale a layer, known beforehand, so a
sentence's numbers are the same in any batch. (A scale taken from the batch, as ready-made dynamic quantizers do,
changes every row when one neighbour changes.) A product is two nodes: quantize, multiply with scales and bias.

Activations are unsigned with their zero in the middle: ONNX Runtime's x86 kernels multiply unsigned by signed
bytes, and take 20 times as long for signed by signed ones. Without VNNI they add two neighbouring products in 16 bits
and saturate, see `service.runtime.saturation`; so the scale of a column is such that no two neighbours of the same
sign add up to more than 128. That costs a third of a bit, and no BLEU; weights in unsigned bytes, which saturate
nowhere, cost nearly three times the time where there is VNNI.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.runtime.saturation import LARGEST_SUM

Floats = NDArray[np.floating]

# Of two neighbouring weights of the same sign together. Rounding may add one: half a level each.
WEIGHT_LEVELS: Final = LARGEST_SUM - 1
# Keeps the scale of a layer or column that is all zero finite; far below any activation that matters.
SMALLEST: Final = np.float32(1e-10)
EMBEDDING_LEVELS: Final = 127
# Of a weight, quantized at a time: one of 256,000 rows fills a gigabyte.
_ROWS: Final = 4096


def weight_levels(weight: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize the weight of a product.

    Args:
        weight: float [out, in].

    Returns:
        int8 [in, out], and the worth of a level, float32 [out].
    """
    levels = np.empty(weight.shape[::-1], np.int8)
    scale = np.empty(len(weight), np.float32)
    for start in range(0, len(weight), _ROWS):
        part = slice(start, start + _ROWS)
        rows = weight[part].astype(np.float32)
        scale[part] = np.maximum(_largest_sums(rows), SMALLEST) / np.float32(WEIGHT_LEVELS)
        levels[:, part] = np.rint(rows / scale[part, None]).astype(np.int8).T
    return levels, scale


def _largest_sums(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Find the largest sums of two neighbouring weights of one sign: weight [out, in] to [out]."""
    pairs = np.pad(weight, ((0, 0), (0, weight.shape[1] % 2))).reshape(len(weight), -1, 2)
    sums = np.maximum(pairs, 0).sum(-1), -np.minimum(pairs, 0).sum(-1)
    return np.maximum(*sums).max(1)  # type: ignore[no-any-return]


def row_levels(weight: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize the rows of an embedding.

    Args:
        weight: float [rows, width].

    Returns:
        int8 [rows, width], and the worth of a level, float32 [rows, 1].
    """
    levels, scale = np.empty(weight.shape, np.int8), np.empty((len(weight), 1), np.float32)
    for start in range(0, len(weight), _ROWS):
        part = slice(start, start + _ROWS)
        rows = weight[part].astype(np.float32)
        largest = np.abs(rows).max(1, keepdims=True)
        scale[part] = np.maximum(largest, SMALLEST) / np.float32(EMBEDDING_LEVELS)
        levels[part] = np.rint(rows / scale[part]).astype(np.int8)
    return levels, scale


def input_scale(largest: float, *, non_negative: bool) -> tuple[np.float32, np.uint8]:
    """Choose how the input of a product is quantized.

    Args:
        largest: absolute value up to which it is represented; beyond, it saturates.
        non_negative: it is never negative (behind a relu): zero is the lowest of the 256 levels.

    Returns:
        The worth of a level, and the level of zero.
    """
    zero_point = 0 if non_negative else 128
    return np.float32(max(largest, float(SMALLEST)) / (255 - zero_point)), np.uint8(zero_point)
