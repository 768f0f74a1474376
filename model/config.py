"""The configuration of a Transformer: the differences between the architectures of the literature, as data."""

from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dragoman.bundle import LONGEST, MOST_LAYERS, MOST_PIECES, WIDEST, DecoderCell

Activation = Literal["relu", "gelu", "gelu_tanh", "gelu_sigmoid", "silu", "tanh"]
HEAD_DIM_UNIT: Final = 8  # the runtime's attention takes only multiples of this head size
Positions = Literal["sinusoidal", "sinusoidal_halves", "sinusoidal_paper_halves", "learned", "relative"]


class TransformerConfig(BaseModel):
    """Architecture of an encoder-decoder Transformer (Vaswani et al., 2017, arXiv:1706.03762).

    Saved as ``config.json`` of a checkpoint; it determines the shape of every weight.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_vocabulary_size: int = Field(gt=3, le=MOST_PIECES)
    target_vocabulary_size: int = Field(gt=3, le=MOST_PIECES)
    d_model: int = Field(default=256, gt=0, le=WIDEST)
    heads: int = Field(default=4, gt=0, le=WIDEST)
    decoder_heads: int | None = Field(default=None, gt=0, le=WIDEST, description="None: as many as `heads`")
    attention_head_dim: int | None = Field(default=None, gt=0, le=WIDEST, description="None: d_model / heads")
    scale_attention: bool = Field(default=True, description="scores are divided by sqrt(head_dim)")
    d_ff: int = Field(default=1024, gt=0, le=16 * WIDEST)
    decoder_d_ff: int | None = Field(default=None, gt=0, le=16 * WIDEST, description="None: as wide as `d_ff`")
    gated: bool = Field(default=False, description="a second product times the activation, arXiv:2002.05202")
    bias: bool = Field(default=True, description="of all linear layers but the output")
    encoder_layers: int = Field(default=6, gt=0, le=MOST_LAYERS)
    decoder_layers: int = Field(default=2, gt=0, le=MOST_LAYERS)
    decoder_cell: DecoderCell = Field(default="attention", description="what a decoder layer knows the target by")
    norm: Literal["pre", "post"] = "pre"
    norm_kind: Literal["layer", "rms"] = "layer"
    norm_epsilon: float = Field(default=1e-5, ge=1e-12, le=1)
    activation: Activation = "relu"
    positions: Positions = "sinusoidal"
    position_offset: int = Field(default=0, ge=0, le=LONGEST)
    relative_buckets: int = Field(default=32, ge=4, le=LONGEST)
    relative_max_distance: int = Field(default=128, gt=1, le=LONGEST)
    relative_shared: bool = Field(default=True, description="one table a side, for all of its layers")
    max_positions: int = Field(default=512, gt=1, le=LONGEST)
    scale_embedding: bool = True
    embedding_norm: bool = False
    share_embeddings: bool = True
    tie_output: bool = True
    output_bias: bool = False
    pad_id: int = Field(default=0, ge=0)
    start_id: int = Field(default=1, ge=0)
    eos_id: int = Field(default=2, ge=0)
    unknown_id: int = Field(default=3, ge=0)

    @property
    def decoder_head_count(self) -> int:
        """Number of attention heads of a decoder layer."""
        return self.decoder_heads or self.heads

    @property
    def head_dim(self) -> int:
        """Width of one attention head of the decoder."""
        return self.head_dim_of(self.decoder_head_count)

    def head_dim_of(self, heads: int) -> int:
        """Width of one head of an attention with `heads` heads."""
        return self.attention_head_dim or self.d_model // heads

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name, heads in (("heads", self.heads), ("decoder_heads", self.decoder_head_count)):
            if self.d_model % 2 or (self.attention_head_dim is None and self.d_model % heads):
                raise ValueError(f"d_model {self.d_model} must be even and a multiple of {name} {heads}")
            if heads * (head_dim := self.head_dim_of(heads)) > WIDEST:
                raise ValueError(f"{name} {heads} times attention_head_dim {head_dim} must be at most {WIDEST}")
        if self.decoder_cell == "ssru" and self.positions == "relative":
            raise ValueError("positions relative need decoder_cell attention, is ssru")
        if self.relative_max_distance <= self.relative_buckets // 2:
            raise ValueError(
                f"relative_max_distance {self.relative_max_distance} must be above half of relative_buckets "
                f"{self.relative_buckets}"
            )
        if self.share_embeddings and self.source_vocabulary_size != self.target_vocabulary_size:
            raise ValueError("share_embeddings needs one vocabulary size on both sides")
        for name in ("pad_id", "start_id", "eos_id", "unknown_id"):
            if (number := getattr(self, name)) >= self.target_vocabulary_size:
                raise ValueError(f"{name} {number} must be below target_vocabulary_size {self.target_vocabulary_size}")
        return self
