"""The number of weights in each part of a model."""

from collections import Counter

from model.checkpoint import weights
from model.transformer import Transformer


def parameters_by_part(model: Transformer) -> dict[str, int]:
    """Count weights by part: embeddings, the layers of both sides by sublayer, the output.

    Returns:
        The number for each part, in the order of the model; a tied weight counts once, in its first part.
    """
    counts: Counter[str] = Counter()
    for name, weight in weights(model).items():
        side, *rest = name.split(".")
        part = f"{side} layers: {rest[1].replace('residual', 'norm')}" if rest[0].isdecimal() else side
        counts[part.replace("_", " ")] += weight.numel()
    return dict(counts)
