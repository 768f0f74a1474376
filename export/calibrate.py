"""How large the inputs of each linear layer get, measured on real sentences."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from export.examples import Batch, Example, batches, run
from model.attention import length_mask
from model.transformer import Transformer

# Of all values a layer reads, the share that its range covers; the few beyond it saturate, and in
# return all others are told apart more finely.
COVERED = 0.9999
# Of a mantissa from 0.5 to 1: eight in an octave.
_STEPS = 16

Ranges = Mapping[str, float]


def calibrate(model: Transformer, examples: Sequence[Example]) -> Ranges:
    """Run all examples through the model.

    Args:
        model: in evaluation mode, fp32.
        examples: what the model is used for.

    Returns:
        The range of the absolute input values of each linear layer, by the layer's name.
    """
    source, target = (sum(map(len, side)) for side in zip(*examples, strict=True))
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    seen = {
        name: _Largest((source if _reads_source(name) else target) * layer.in_features)
        for name, layer in layers.items()
    }
    for batch in batches(examples, model.config.pad_id):
        with _recorded(layers, batch, seen):
            run(model, batch)
    return {name: float(steady(largest.last)) for name, largest in seen.items()}


class _Largest:
    """The largest of many values, and only they: all values of a large model would be gigabytes."""

    def __init__(self, total: int) -> None:
        """Expect `total` values, of which the smallest, a share of COVERED, lie within the range."""
        self._count = total - max(1, int(COVERED * total)) + 1
        self._values = torch.empty(0)

    def add(self, values: Tensor) -> None:
        """Look at some of the values, float [count]."""
        if len(self._values) == self._count:
            values = values[values > self._values[-1]]
        together = torch.cat([self._values, values])
        self._values = together.topk(min(self._count, len(together))).values

    @property
    def last(self) -> Tensor:
        """The smallest of the largest: the end of the range."""
        return self._values[-1]


@contextmanager
def _recorded(layers: Mapping[str, nn.Linear], batch: Batch, seen: Mapping[str, _Largest]) -> Iterator[None]:
    """Keep the absolute inputs of every linear layer, at positions that are no padding, while the block runs."""
    source = length_mask(batch.source_lengths, batch.source.shape[1])[:, 0, 0]
    target = length_mask(batch.target_lengths, batch.target.shape[1])[:, 0, 0]

    def hook(name: str, states: Tensor) -> None:
        seen[name].add(states[source if _reads_source(name) else target].abs().flatten())

    handles = [
        layer.register_forward_pre_hook(lambda _, inputs, name=name: hook(name, inputs[0]), prepend=True)
        for name, layer in layers.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _reads_source(name: str) -> bool:
    return name.startswith("encoder.") or name.endswith("cross_attention.key_value")


def steady(largest: Tensor) -> Tensor:
    """Round measured values up to the next of eight in an octave, that is by an eighth at most.

    Another processor adds up in another order and measures other last digits: they shall not make another bundle.
    Every operation here is exact.
    """
    mantissa, exponent = torch.frexp(largest)
    return torch.ldexp((mantissa * _STEPS).ceil() / _STEPS, exponent)
