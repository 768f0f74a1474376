"""Keys and values as bytes: a decode step reads a quarter of the fp32 data.

Every channel is scaled beforehand so that its largest value is that of a signed byte. The factor goes into the weights
on both of its sides, key against query and value against output projection, where it changes nothing but rounding (the
idea of SmoothQuant, arXiv:2211.10438). So the scale of a byte is 1 everywhere, and the numbers of a sentence are the
same in any batch.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from export.calibrate import steady
from export.parameters import Parameters
from export.teacher import Floats, Seen

_LARGEST: Final = np.float32(127)  # the largest signed byte
_ONE: Final = np.float32(1)
# Keeps the factor of an all-zero channel finite; far below any relevant key or value.
_SMALLEST: Final = np.float32(1e-6)


def measure_factors(runs: Iterable[Seen], width: int) -> dict[str, Floats]:
    """Compute the factors of keys and values that bring the maximum of each channel to _LARGEST, or up to 1/8 less.

    Args:
        runs: runs of sentences like those the model is used for; padding counts too.
        width: the width of keys and of values, heads * head_dim.

    Returns:
        For each linear layer with keys and values: the factors of its keys and of its values, [2 * width].
    """
    largest: dict[str, Floats] = {}
    for run in runs:
        for name, states in run.made.items():
            found = np.abs(states).reshape(-1, states.shape[2]).max(0)[-2 * width :]
            largest[name] = np.maximum(largest.get(name, found), found)
    return {name: _LARGEST * (_ONE / steady(np.maximum(found, _SMALLEST))) for name, found in largest.items()}


def scale_to_bytes(parameters: Parameters, factors: Mapping[str, Floats]) -> dict[str, Floats]:
    """Scale keys and values, and the weights multiplied with them; the results change only by rounding.

    Args:
        parameters: the parameters to scale.
        factors: the result of `measure_factors`.

    Returns:
        The factors by which the inputs of the output projections are now larger, by the names of these layers.
    """
    larger = {}
    for layer, both in factors.items():
        path, _, projection = layer.rpartition(".")
        key, value = np.split(both, 2)
        if projection == "query_key_value":
            parameters.scale_outputs(layer, np.concatenate([1 / key, key, value]))
        else:
            parameters.scale_outputs(f"{path}.query", 1 / key)
            parameters.scale_outputs(layer, both)
        parameters.divide_inputs(f"{path}.output", value)
        larger[f"{path}.output"] = value
    return larger
