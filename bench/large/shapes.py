"""The shapes of models that are large for a CPU, and what is asked of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.peers.random_model import BASE


@dataclass(frozen=True)
class Shape:
    """A model without weights.

    Attributes:
        sentences: that are translated at once, and one by one.
        limits: what is promised of figures of `Cost`, by their names.
    """

    name: str
    config: Mapping[str, Any]
    sentences: tuple[int, int]
    limits: Mapping[str, float]


def _config(vocabulary: int, **fields: Any) -> dict[str, Any]:
    sizes = {"source_vocabulary_size": vocabulary, "target_vocabulary_size": vocabulary}
    return {**BASE, **sizes, "tie_output": True, **fields}


SHAPES: Final[Mapping[str, Shape]] = {
    shape.name: shape
    for shape in (
        Shape("opus-mt", _config(58_101, activation="silu"), (256, 24), {"bundle_mb": 110}),
        Shape(
            "nllb-600m",
            _config(256_206, d_model=1024, heads=16, d_ff=4096, encoder_layers=12, decoder_layers=12),
            (64, 8),
            {"bundle_mb": 1000, "export_peak_mb": 6000, "resident_mb": 1500, "first_answer_s": 3},
        ),
    )
}
