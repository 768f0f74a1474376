from typing import Any

import pytest
from pydantic import ValidationError

from model.options import TrainingOptions


def test_architecture_follows_the_options() -> None:
    options = TrainingOptions(d_model=64, heads=2, d_ff=96, encoder_layers=3, decoder_layers=1, norm="post")
    config = options.transformer((500, 500))
    assert (config.d_model, config.heads, config.d_ff, config.encoder_layers, config.decoder_layers) == (
        64,
        2,
        96,
        3,
        1,
    )
    assert config.norm == "post"
    assert config.share_embeddings


def test_the_decoder_may_be_a_recurrence() -> None:
    assert TrainingOptions().transformer((500, 500)).decoder_cell == "attention"
    assert TrainingOptions(decoder="ssru").transformer((500, 500)).decoder_cell == "ssru"


def test_vocabularies_apart() -> None:
    config = TrainingOptions(joint=False).transformer((500, 300))
    assert (config.source_vocabulary_size, config.target_vocabulary_size) == (500, 300)
    assert not config.share_embeddings


@pytest.mark.parametrize(
    "fields",
    [
        {"vocabulary_size": 260},  # 256 bytes and 4 special pieces leave no piece
        {"vocabulary_size": 2**24 + 1},
        {"dropout": 1.0},
        {"steps": 0},
        {"max_tokens": 513},  # beyond the positions of the model
        {"norm": "none"},
        {"rate": float("inf")},
        {"weight": {"*": float("nan")}},
        {"learning_rate": 1},
        {"source_language": "de-AT", "target_language": "de-at"},
    ],
)
def test_refuses(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        TrainingOptions(**fields)


def test_every_option_is_described() -> None:
    assert all(field.description for field in TrainingOptions.model_fields.values())
