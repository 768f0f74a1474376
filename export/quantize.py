"""8-bit products; the result for a row does not depend on the other rows.

Weights: symmetric, one scale per output column. Activations: one calibrated scale per layer, known beforehand, so that
a sentence's numbers are the same in any batch. (Common dynamic quantizers take the scale from the batch, so that one
changed neighbour changes every row.) A product has two nodes: quantize, and multiply with scales and bias.

Activations are unsigned with their zero in the middle: ONNX Runtime's x86 kernels multiply unsigned by signed bytes,
and take 20 times as long for signed by signed ones. Without VNNI they add two neighbouring products in 16 bits and
saturate, see `service.runtime.saturation`. So the scale of a column keeps the sum of two neighbours of the same sign at
128 or less. That costs a third of a bit, and no BLEU. Weights in unsigned bytes never saturate, but take nearly three
times as long with VNNI.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.runtime.saturation import LARGEST_SUM

Floats = NDArray[np.floating]

# The largest sum of two neighbouring weights of the same sign. Rounding may add one: half a level each.
WEIGHT_LEVELS: Final = LARGEST_SUM - 1
# Keeps the scale of an all-zero layer or column finite; far below any relevant activation.
SMALLEST: Final = np.float32(1e-10)
EMBEDDING_LEVELS: Final = 127
# Rows of a weight quantized at a time: a weight of 256,000 rows fills a gigabyte.
_ROWS: Final = 4096


def weight_levels(weight: Floats) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize the weight of a product.

    Args:
        weight: float [out, in].

    Returns:
        int8 [in, out], and the scale of a level, float32 [out].
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
        int8 [rows, width], and the scale of a level, float32 [rows, 1].
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
    """Choose the quantization of a product's input.

    Args:
        largest: the largest absolute value that is represented; larger ones saturate.
        non_negative: whether the input is never negative (after a relu): then zero is the lowest of the 256 levels.

    Returns:
        The scale of a level, and the level of zero.
    """
    zero_point = 0 if non_negative else 128
    return np.float32(max(largest, float(SMALLEST)) / (255 - zero_point)), np.uint8(zero_point)
