from typing import Any

import pytest
from pydantic import ValidationError

from model.config import TransformerConfig

VOCABULARY: dict[str, Any] = {"source_vocabulary_size": 100, "target_vocabulary_size": 100}


def test_json_round_trip() -> None:
    config = TransformerConfig(**VOCABULARY, d_model=64, norm="post", position_offset=2)
    assert TransformerConfig.model_validate_json(config.model_dump_json()) == config


def test_head_dim() -> None:
    assert TransformerConfig(**VOCABULARY, d_model=96, heads=6).head_dim == 16


def test_heads_may_be_as_wide_as_they_like() -> None:
    config = TransformerConfig(**VOCABULARY, d_model=96, heads=5, decoder_heads=7, attention_head_dim=16)
    assert (config.head_dim, config.head_dim_of(5)) == (16, 16)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_model": 30, "heads": 4}, "d_model 30 must be even and a multiple of heads 4"),
        ({"d_model": 15, "heads": 5}, "d_model 15 must be even"),
        ({"heads": 9, "attention_head_dim": 2**13}, "heads 9 times attention_head_dim 8192 must be at most 65536"),
        ({"relative_max_distance": 16}, "relative_max_distance 16 must be above half of relative_buckets 32"),
        ({"relative_buckets": 3}, "relative_buckets"),
        ({"target_vocabulary_size": 90}, "share_embeddings needs one vocabulary size"),
        ({"source_vocabulary_size": 3}, "source_vocabulary_size"),
        ({"encoder_layers": 0}, "encoder_layers"),
        ({"position_offset": -1}, "position_offset"),
        ({"norm": "middle"}, "norm"),
        ({"activation": "elu"}, "activation"),
        ({"positions": "rotary"}, "positions"),
        ({"layers": 6}, "layers"),
        ({"decoder_cell": "gru"}, "decoder_cell"),
        ({"decoder_cell": "ssru", "positions": "relative"}, "positions relative need decoder_cell attention, is ssru"),
    ],
)
def test_refuses(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TransformerConfig(**VOCABULARY | fields)


def test_vocabularies_apart_may_differ() -> None:
    config = TransformerConfig(source_vocabulary_size=100, target_vocabulary_size=90, share_embeddings=False)
    assert config.target_vocabulary_size == 90
