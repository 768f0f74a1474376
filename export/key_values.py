"""Keys and values as bytes: a decode step reads a quarter of what it would read of fp32.

Every channel is scaled beforehand so that its largest value is that of a signed byte. The factor goes into the weights
on both sides of it, key against query and value against output projection, where it changes nothing but rounding (the
idea of SmoothQuant, arXiv:2211.10438). So the scale of a byte is 1 for all, and a sentence's numbers are the same in
any batch.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from export.calibrate import steady
from export.parameters import Parameters
from export.teacher import Floats, Seen

_LARGEST: Final = np.float32(127)  # of a signed byte
_ONE: Final = np.float32(1)
# Keeps the factor of a channel that is all zero finite; far below any key or value that matters.
_SMALLEST: Final = np.float32(1e-6)


def measure_factors(runs: Iterable[Seen], width: int) -> dict[str, Floats]:
    """Find by what to multiply keys and values so that the largest of each channel is _LARGEST, or an eighth less.

    Args:
        runs: of sentences that the model is used for; padding counts too.
        width: of keys and of values, heads * head_dim.

    Returns:
        Of each linear layer that makes keys and values, those of its keys and of its values, [2 * width].
    """
    largest: dict[str, Floats] = {}
    for run in runs:
        for name, states in run.made.items():
            found = np.abs(states).reshape(-1, states.shape[2]).max(0)[-2 * width :]
            largest[name] = np.maximum(largest.get(name, found), found)
    return {name: _LARGEST * (_ONE / steady(np.maximum(found, _SMALLEST))) for name, found in largest.items()}


def scale_to_bytes(parameters: Parameters, factors: Mapping[str, Floats]) -> dict[str, Floats]:
    """Scale keys and values, and what they meet; the model computes the same but for rounding.

    Args:
        parameters: to scale.
        factors: from `measure_factors`.

    Returns:
        By what the inputs of the output projections are larger now, by the names of these layers.
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
