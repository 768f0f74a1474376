"""The layout of weights that BART, mBART, M2M100, NLLB and Marian share in Hugging Face: one mapping for all."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from dragoman.bundle import DecoderCell
from dragoman.errors import DataError
from model.arrays import Array
from model.config import TransformerConfig
from model.importing.family import Network, Recipe
from model.importing.generation import Generation
from model.importing.settings import activation, configuration, flag, whole
from model.importing.source import CONFIG, Source
from model.importing.weights import are_equal
from model.safetensors_file import Weights

# Keys of config.json that `network` reads.
_USED_WORDS: Final = """
vocab_size max_position_embeddings encoder_layers encoder_ffn_dim encoder_attention_heads decoder_layers
decoder_ffn_dim decoder_attention_heads activation_function d_model scale_embedding
"""
USED: Final = frozenset(_USED_WORDS.split())
# What BART, M2M100 and Marian are where config.json leaves it out.
DEFAULTS: Final = {"d_model": 1024, "heads": 16, "d_ff": 4096, "layers": 12, "max_positions": 1024}
# Added to a logit, it is below all others; half precision does not hold it, the bias is always fp32.
BANNED: Final = -1e9

_SHARED: Final = "model.shared.weight"
_ENCODER: Final = "model.encoder.embed_tokens.weight"
_DECODER: Final = "model.decoder.embed_tokens.weight"
_OUTPUT: Final = "lm_head.weight"
_EMBEDDINGS: Final = (_SHARED, _ENCODER, _DECODER, _OUTPUT)
_BIAS: Final = "final_logits_bias"
# Version numbers in early files of fairseq.
_VERSIONS: Final = ("model.encoder.version", "model.decoder.version")


@dataclass(frozen=True)
class Layout:
    """The differences between the families of this layout.

    Attributes:
        norm: whether layers normalize before or after.
        embedding_norm: whether embeddings are normalized.
        positions: how positions are encoded.
        position_offset: the offset of the first position.
        separate: whether source and target have separate vocabularies.
        defaults: the values of keys that config.json may omit.
        default_activation: the activation if config.json names none.
        default_scale: the scaling of embeddings if config.json does not say.
        decoder_cell: the cell of every decoder layer.
        norm_epsilon: the epsilon of every norm.
    """

    norm: Literal["pre", "post"]
    embedding_norm: bool
    positions: Literal["sinusoidal_halves", "sinusoidal_paper_halves", "learned"]
    position_offset: int
    defaults: dict[str, int]
    default_activation: str
    default_scale: bool
    separate: bool = False
    decoder_cell: DecoderCell = "attention"
    norm_epsilon: float = 1e-5


@dataclass(frozen=True)
class Embeddings:
    """Names of the embedding tensors and of the output tensor; tensors with equal values share one name."""

    source: str
    target: str
    output: str


def network(
    source: Source,
    weights: Weights,
    layout: Layout,
    generation: Generation,
    unknown_id: int,
    start_id: int,
    ignored: Iterable[str] = (),
) -> Network:
    """Map a model.

    Args:
        source: the folder.
        weights: the weights of the folder.
        layout: the layout of its family.
        generation: its decoding settings.
        unknown_id: the id of pieces outside the vocabularies.
        start_id: the id with which translations begin, unless the language decides.
        ignored: further tensors that are not needed.

    Raises:
        DataError: a tensor is missing, or its shape does not match config.json.
    """
    defaults = layout.defaults
    embeddings, warnings = _embeddings(source, weights, layout)
    bias = output_bias(weights, generation, weights.shape(embeddings.output)[0])
    rows = min(weights.shape(embeddings.source)[0], weights.shape(embeddings.target)[0])
    config = configuration(
        source,
        source_vocabulary_size=weights.shape(embeddings.source)[0],
        target_vocabulary_size=weights.shape(embeddings.target)[0],
        d_model=whole(source, "d_model", defaults["d_model"]),
        heads=whole(source, "encoder_attention_heads", defaults["heads"]),
        decoder_heads=whole(source, "decoder_attention_heads", defaults["heads"]),
        d_ff=whole(source, "encoder_ffn_dim", defaults["d_ff"]),
        decoder_d_ff=whole(source, "decoder_ffn_dim", defaults["d_ff"]),
        encoder_layers=whole(source, "encoder_layers", defaults["layers"]),
        decoder_layers=whole(source, "decoder_layers", defaults["layers"]),
        norm=layout.norm,
        norm_epsilon=layout.norm_epsilon,
        decoder_cell=layout.decoder_cell,
        activation=activation(source, "activation_function", layout.default_activation),
        positions=layout.positions,
        position_offset=layout.position_offset,
        max_positions=whole(source, "max_position_embeddings", defaults["max_positions"]),
        scale_embedding=flag(source, "scale_embedding", layout.default_scale),
        embedding_norm=layout.embedding_norm,
        share_embeddings=embeddings.source == embeddings.target,
        tie_output=embeddings.target == embeddings.output,
        output_bias=bias is not None,
        # Padding is masked; the padding id of a larger source vocabulary is no id of the target.
        pad_id=generation.pad_id if generation.pad_id < rows else start_id,
        start_id=start_id,
        eos_id=generation.eos_id,
        unknown_id=unknown_id,
    )
    followed = dict(recipes(config, embeddings))
    if bias is not None:
        followed["output.bias"] = bias
    return Network(config, followed, frozenset({*_EMBEDDINGS, _BIAS, *_VERSIONS, *ignored}), tuple(warnings))


def _embeddings(source: Source, weights: Weights, layout: Layout) -> tuple[Embeddings, list[str]]:
    """Find the embedding and output tensors: by their presence and values, since flags are often wrong."""
    there = set(weights.names)
    joint = [] if layout.separate else [_SHARED]

    def first(*names: str) -> str:
        for name in names:
            if name in there:
                return name
        raise DataError(f"{source.folder}: the weights have no {names[0]}")

    target = first(_DECODER, *joint, _OUTPUT, _ENCODER)
    encoder = first(_ENCODER, *joint, target)
    output = first(_OUTPUT, *joint, target)
    if are_equal(weights, encoder, target):
        target = encoder
    if are_equal(weights, output, target):
        output = target
    warnings = _disagreements(source, layout, Embeddings(encoder, target, output), has_output=_OUTPUT in there)
    _check_rows(source, weights, layout, encoder, target, output)
    return Embeddings(encoder, target, output), warnings


def _disagreements(source: Source, layout: Layout, found: Embeddings, *, has_output: bool) -> list[str]:
    """List contradictions between the tensors and config.json."""
    says_tied, is_tied = flag(source, "tie_word_embeddings", True), found.output == found.target
    warnings = []
    if says_tied and not is_tied:
        warnings.append("tie_word_embeddings is true, but the output differs from the embedding: the tensors are used")
    if not says_tied and is_tied and not has_output:
        warnings.append("tie_word_embeddings is false, but there is no lm_head.weight: the embedding is used")
    if not layout.separate and says_tied and found.source != found.target:
        warnings.append("the embeddings of encoder and decoder should be one, but differ: the tensors are used")
    return [f"{CONFIG}: {warning}" for warning in warnings]


def _check_rows(source: Source, weights: Weights, layout: Layout, encoder: str, target: str, output: str) -> None:
    size = whole(source, "vocab_size", weights.shape(encoder)[0])
    target_size = whole(source, "decoder_vocab_size", size) if layout.separate else size
    width = whole(source, "d_model", layout.defaults["d_model"])
    for name, rows in ((encoder, size), (target, target_size), (output, target_size)):
        if weights.shape(name) != (rows, width):
            raise DataError(f"{source.folder}: {name} is {list(weights.shape(name))}, {CONFIG} says {[rows, width]}")


def output_bias(weights: Weights, generation: Generation, rows: int) -> Array | None:
    """Add up the bias of the logits and the ban of ids, in fp32; None if there is neither.

    Raises:
        DataError: the bias has another size, or a banned id does not exist.
    """
    bias = np.zeros(rows, np.float32)
    if _BIAS in set(weights.names):
        if (shape := weights.shape(_BIAS)) not in ((rows,), (1, rows)):
            raise DataError(f"weights: {_BIAS} is {list(shape)}, not {[1, rows]}")
        bias += weights.read(_BIAS).astype(np.float32).reshape(-1)
    for banned in generation.banned:
        if banned >= rows:
            raise DataError(f"bad_words_ids, suppress_tokens: {banned} is not below the {rows} pieces of the target")
        bias[banned] = BANNED
    return bias if bool(bias.any()) else None


def recipes(config: TransformerConfig, embeddings: Embeddings) -> Iterator[tuple[str, Recipe]]:
    """Name each weight of the checkpoint, with the source tensors that it is joined from."""
    yield "source_embedding.weight", [embeddings.source]
    if not config.share_embeddings:
        yield "target_embedding.weight", [embeddings.target]
    if not config.tie_output:
        yield "output.weight", [embeddings.output]
    for side, theirs in (("source", "encoder"), ("target", "decoder")):
        if config.positions == "learned":
            yield f"{side}_positions.table", [f"model.{theirs}.embed_positions.weight"]
        if config.embedding_norm:
            yield from _pair(f"{side}_norm", [f"model.{theirs}.layernorm_embedding"])
        if config.norm == "pre":
            yield from _pair(f"{theirs}_norm", [f"model.{theirs}.layer_norm"])
    for layer in range(config.encoder_layers):
        ours, theirs = f"encoder.{layer}", f"model.encoder.layers.{layer}"
        yield from _self_attention(ours, theirs)
        yield from _feed_forward(ours, theirs)
    for layer in range(config.decoder_layers):
        ours, theirs = f"decoder.{layer}", f"model.decoder.layers.{layer}"
        yield from (_recurrence if config.decoder_cell == "ssru" else _self_attention)(ours, theirs)
        yield from _feed_forward(ours, theirs)
        attention = f"{theirs}.encoder_attn"
        yield from _pair(f"{ours}.cross_attention.query", [f"{attention}.q_proj"])
        yield from _pair(f"{ours}.cross_attention.key_value", [f"{attention}.{name}_proj" for name in "kv"])
        yield from _pair(f"{ours}.cross_attention.output", [f"{attention}.out_proj"])
        yield from _pair(f"{ours}.cross_residual.norm", [f"{theirs}.encoder_attn_layer_norm"])


def _self_attention(ours: str, theirs: str) -> Iterator[tuple[str, Recipe]]:
    attention = f"{theirs}.self_attn"
    yield from _pair(f"{ours}.self_attention.query_key_value", [f"{attention}.{name}_proj" for name in "qkv"])
    yield from _pair(f"{ours}.self_attention.output", [f"{attention}.out_proj"])
    yield from _pair(f"{ours}.self_residual.norm", [f"{theirs}.self_attn_layer_norm"])


def _recurrence(ours: str, theirs: str) -> Iterator[tuple[str, Recipe]]:
    recurrence = f"{theirs}.recurrence"
    yield from _pair(f"{ours}.recurrence.gate_input", [f"{recurrence}.{name}" for name in ("forget", "admit")])
    yield from _pair(f"{ours}.self_residual.norm", [f"{recurrence}.norm"])


def _feed_forward(ours: str, theirs: str) -> Iterator[tuple[str, Recipe]]:
    yield from _pair(f"{ours}.feed_forward.expand", [f"{theirs}.fc1"])
    yield from _pair(f"{ours}.feed_forward.contract", [f"{theirs}.fc2"])
    yield from _pair(f"{ours}.feed_forward_residual.norm", [f"{theirs}.final_layer_norm"])


def _pair(ours: str, theirs: Sequence[str]) -> Iterator[tuple[str, Recipe]]:
    for part in ("weight", "bias"):
        yield f"{ours}.{part}", [f"{name}.{part}" for name in theirs]
