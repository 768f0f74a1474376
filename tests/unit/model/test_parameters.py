"""Names and shapes of weights are those of the Transformer, over the options of its configuration."""

from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import BundleError
from model.checkpoint import weights
from model.config import DecoderCell, Positions, TransformerConfig
from model.parameters import compare_shapes, parameter_shapes
from model.transformer import Transformer


@st.composite
def configurations(draw: st.DrawFn) -> TransformerConfig:
    small, pieces = st.integers(1, 4), st.integers(4, 40)
    source = draw(pieces)
    shares = draw(st.booleans())
    chosen: dict[str, Any] = {
        "source_vocabulary_size": source,
        "target_vocabulary_size": source if shares else draw(pieces),
        "share_embeddings": shares,
        "d_model": draw(st.sampled_from([24, 48])),
        "norm": draw(st.sampled_from(["pre", "post"])),
        "norm_kind": draw(st.sampled_from(["layer", "rms"])),
        "positions": (positions := draw(st.sampled_from(get_args(Positions)))),
        "decoder_cell": "attention" if positions == "relative" else draw(st.sampled_from(get_args(DecoderCell))),
        "position_offset": draw(st.integers(0, 3)),
        "max_positions": draw(st.integers(2, 40)),
        "relative_buckets": draw(st.integers(4, 40)),
    }
    chosen |= {name: draw(small) for name in ("heads", "encoder_layers", "decoder_layers")}
    chosen |= {name: draw(st.none() | small) for name in ("decoder_heads", "attention_head_dim")}
    chosen |= {"d_ff": draw(st.integers(1, 40)), "decoder_d_ff": draw(st.none() | st.integers(1, 40))}
    switches = ("gated", "bias", "relative_shared", "embedding_norm", "tie_output", "output_bias")
    chosen |= {name: draw(st.booleans()) for name in switches}
    ids = dict.fromkeys(("pad_id", "start_id", "eos_id", "unknown_id"), 0)
    return TransformerConfig(**chosen | ids)


@given(config=configurations())
def test_they_are_those_of_the_transformer(config: TransformerConfig) -> None:
    with torch.device("meta"):
        model = Transformer(config)
    assert parameter_shapes(config) == {name: tuple(weight.shape) for name, weight in weights(model).items()}


def test_what_does_not_fit_is_listed() -> None:
    config = TransformerConfig(source_vocabulary_size=9, target_vocabulary_size=9)
    shapes = parameter_shapes(config)
    compare_shapes(config, {name: list(shape) for name, shape in shapes.items()}, Path("here"))
    with pytest.raises(BundleError, match=r"^here: weights do not fit the configuration: missing .*; and \d+ more$"):
        compare_shapes(config, {}, Path("here"))
