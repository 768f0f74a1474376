"""Training options, as data."""

from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman.bundle import MOST_PIECES, DecoderCell
from model.augmentation.kinds import Kind
from model.config import HEAD_DIM_UNIT, TransformerConfig


class TrainingOptions(BaseModel):
    """Options of a training run; every field is a flag of `dragoman train`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    source_language: str = Field(default="", description="BCP-47 code of the source side, recorded for export")
    target_language: str = Field(default="", description="BCP-47 code of the target side, recorded for export")
    weight: dict[str, Annotated[float, Field(ge=0, le=1000)]] = Field(
        default={},
        description="copies of a pair in an epoch, by shell pattern of its tag; the last that matches counts",
    )
    filter: bool = Field(default=False, description="leave pairs out whose lengths, numbers or letters do not fit")
    augment: dict[Kind, Annotated[float, Field(ge=0, le=1)]] = Field(
        default={}, description=f"share of the pairs that are changed so: {', '.join(get_args(Kind))}"
    )
    vocabulary_size: int = Field(
        default=8000, gt=260, le=MOST_PIECES, description="pieces of the tokenizer (of each, if apart)"
    )
    joint: bool = Field(default=True, description="one tokenizer and one embedding for both languages")
    d_model: int = Field(default=256, gt=0, description="width of the model")
    heads: int = Field(default=4, gt=0, description="attention heads")
    d_ff: int = Field(default=1024, gt=0, description="width of the feed-forward layers")
    encoder_layers: int = Field(default=6, gt=0, description="layers of the encoder")
    decoder_layers: int = Field(default=2, gt=0, description="layers of the decoder")
    decoder: DecoderCell = Field(
        default="attention", description="what a decoder layer knows the target by; a step of ssru costs less"
    )
    norm: Literal["pre", "post"] = Field(default="pre", description="normalize before or after each sublayer")
    activation: Literal["relu", "gelu", "silu"] = Field(default="relu", description="of the feed-forward layers")
    dropout: float = Field(default=0.1, ge=0, lt=1, description="dropout rate")
    label_smoothing: float = Field(default=0.1, ge=0, lt=1, description="label smoothing")
    candidates: int = Field(default=1, gt=0, description="segmentations of a source to draw from (1: the best only)")
    max_tokens: int = Field(default=128, gt=1, le=512, description="pairs with a longer side are left out")
    batch_tokens: int = Field(default=4096, gt=0, description="padded tokens of a batch, per side")
    steps: int = Field(default=10_000, gt=0, description="number of updates")
    warmup_steps: int = Field(default=300, ge=0, description="updates of linear warm-up")
    decay_steps: int = Field(default=2_000, ge=0, description="updates at the end during which the rate falls to zero")
    rate: float = Field(default=2e-3, gt=0, description="peak learning rate of the layers' matrices (Muon)")
    adam_rate: float = Field(default=1e-3, gt=0, description="peak learning rate of everything else (AdamW)")
    weight_decay: float = Field(default=0.1, ge=0, description="weight decay of the layers' matrices")
    clip_norm: float = Field(default=1.0, gt=0, description="gradients are clipped to this norm")
    save_steps: int = Field(default=200, gt=0, description="updates between two saved states")
    evaluate_steps: int = Field(default=1_000, gt=0, description="updates between two evaluations on dev")
    average: int = Field(default=5, gt=0, description="newest saved states whose weights are averaged")
    patience: int = Field(default=10, gt=0, description="stop after this many evaluations without a better BLEU")
    seed: int = Field(default=1, ge=0, description="seed of weights, order and dropout")
    bf16: bool = Field(default=False, description="bf16 products (a GPU always; a CPU with native bf16 gains too)")
    compile: bool = Field(default=False, description="torch.compile: a minute or two to start, then faster")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="where to train")

    @model_validator(mode="after")
    def _two_languages(self) -> Self:
        if self.source_language and self.source_language.lower() == self.target_language.lower():
            raise ValueError(f"the source and the target language are both {self.source_language}")
        return self

    @model_validator(mode="after")
    def _can_be_exported(self) -> Self:
        head_dim, rest = divmod(self.d_model, self.heads)
        if not rest and head_dim % HEAD_DIM_UNIT:
            raise ValueError(
                f"--d-model {self.d_model} divided by --heads {self.heads} must be a multiple of {HEAD_DIM_UNIT}, "
                f"is {head_dim}"
            )
        return self

    def transformer(self, vocabulary_sizes: tuple[int, int]) -> TransformerConfig:
        """Make the configuration for these options.

        Raises:
            pydantic.ValidationError: the options contradict each other.
        """
        return TransformerConfig(
            source_vocabulary_size=vocabulary_sizes[0],
            target_vocabulary_size=vocabulary_sizes[1],
            share_embeddings=self.joint,
            decoder_cell=self.decoder,
            **self.model_dump(
                include={"d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "norm", "activation"}
            ),
        )
