"""What plain PyTorch decodes, the yardstick of what bundles decode."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from dragoman.bundle import target_limit
from export.parameters import Parameters
from export.samples import Sample
from model.arrays import Array, DType
from model.decoding import greedy
from model.transformer import Transformer

_BATCH = 64


def decode(model: Transformer, samples: Sequence[Sample], max_target_tokens: int) -> list[list[int]]:
    """Decode each sample greedily, under its own limit."""
    # Rows of a batch begin with as many ids.
    order = sorted(range(len(samples)), key=lambda row: (len(samples[row].start_ids), len(samples[row].source)))
    results: list[list[int]] = [[]] * len(samples)
    for _, group in groupby(order, key=lambda row: len(samples[row].start_ids)):
        alike = list(group)
        for start in range(0, len(alike), _BATCH):
            rows = alike[start : start + _BATCH]
            decoded = greedy(
                model,
                [samples[row].source for row in rows],
                max_target_tokens=target_limit(len(samples[rows[-1]].source), max_target_tokens),
                start_ids=[samples[row].start_ids for row in rows],
            )
            for row, ids in zip(rows, decoded, strict=True):
                results[row] = ids[: target_limit(len(samples[row].source), max_target_tokens)]
    return results


class _Held:
    """The weights of a module, as `model.safetensors_file.Weights`."""

    def __init__(self, model: Transformer) -> None:
        self._arrays = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}

    @property
    def names(self) -> Iterable[str]:
        return self._arrays

    def shape(self, name: str) -> tuple[int, ...]:
        return self._arrays[name].shape

    def dtype(self, name: str) -> DType:
        return self._arrays[name].dtype

    def read(self, name: str) -> Array:
        return self._arrays[name]


def parameters_of(model: Transformer) -> Parameters:
    """Give the weights of a module to what writes graphs."""
    return Parameters(model.config, _Held(model))
