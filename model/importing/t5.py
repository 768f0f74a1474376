"""T5, mT5, umT5 and MADLAD-400, with the layout of T5: relative positions, other norms, no biases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from dragoman.errors import DataError
from model.config import Activation, TransformerConfig
from model.importing import t5_texts
from model.importing.bart_like import output_bias
from model.importing.family import Family, Network, Recipe, Texts, Wanted
from model.importing.generation import Generation, read_generation
from model.importing.settings import ACTIVATIONS, check_keys, configuration, flag, whole
from model.importing.source import CONFIG, Source
from model.importing.weights import are_equal
from model.safetensors_file import Weights

_USED_WORDS: Final = """
vocab_size d_model d_kv d_ff num_layers num_decoder_layers num_heads relative_attention_num_buckets
relative_attention_max_distance layer_norm_epsilon feed_forward_proj dense_act_fn is_gated_act scale_decoder_outputs
n_positions
"""
_USED: Final = frozenset(_USED_WORDS.split())
_HARMLESS: Final = frozenset({"dropout_rate", "initializer_factor"})
# Relative positions have no limit; but these models were not trained on longer sources.
_MAX_POSITIONS: Final = 512

_SHARED: Final = "shared.weight"
_OUTPUT: Final = "lm_head.weight"
_LAST_NORM: Final = "decoder.final_layer_norm.weight"
_COPIES: Final = frozenset({"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})
# In early files, and unused: attention to the source has no positions.
_UNUSED: Final = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"


@dataclass(frozen=True)
class _Kind:
    """The differences between the three kinds.

    Attributes:
        architecture: the class of Hugging Face.
        feed_forward: the kind of feed-forward layer if config.json does not name it.
        scaled: whether the output is scaled, unless config.json says that it is not tied.
        relative_shared: whether all layers of a side share one table of distances.
        defaults: the values of keys that config.json may omit.
    """

    architecture: str
    feed_forward: str
    scaled: bool
    relative_shared: bool
    defaults: dict[str, int]


_T5: Final = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
_MT5: Final = {"vocab_size": 250112, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8, "num_heads": 6}
_KINDS: Final = {
    "t5": _Kind("T5ForConditionalGeneration", "relu", scaled=True, relative_shared=True, defaults=_T5),
    "mt5": _Kind("MT5ForConditionalGeneration", "gated-gelu", scaled=False, relative_shared=True, defaults=_MT5),
    "umt5": _Kind("UMT5ForConditionalGeneration", "gated-gelu", scaled=True, relative_shared=False, defaults=_MT5),
}


def check(source: Source) -> list[str]:
    """Refuse unsupported settings; see `Family.check`."""
    check_keys(source, _USED, {}, _kind(source).architecture, _HARMLESS)
    _feed_forward(source)
    return list(_generation(source).warnings)


def texts(source: Source, wanted: Wanted) -> Texts:
    """Read the tokenizer and the languages; see `Family.texts`."""
    generation = _generation(source)
    return t5_texts.read(source, wanted, _size(source, "vocab_size"), generation.eos_id, generation.forced_id)


def network(source: Source, weights: Weights, unknown_id: int) -> Network:
    """Map the weights; see `Family.network`."""
    generation, kind = _generation(source), _kind(source)
    tied = _is_tied(source, weights)
    bias = output_bias(weights, generation, weights.shape(_SHARED)[0])
    activation, gated = _feed_forward(source)
    layers = _size(source, "num_layers")
    config = configuration(
        source,
        source_vocabulary_size=_size(source, "vocab_size"),
        target_vocabulary_size=_size(source, "vocab_size"),
        d_model=_size(source, "d_model"),
        heads=_size(source, "num_heads"),
        attention_head_dim=_size(source, "d_kv"),
        scale_attention=False,
        d_ff=_size(source, "d_ff"),
        gated=gated,
        bias=False,
        encoder_layers=layers,
        decoder_layers=whole(source, "num_decoder_layers", layers),
        norm="pre",
        norm_kind="rms",
        norm_epsilon=source.config.get("layer_norm_epsilon", 1e-6),
        activation=activation,
        positions="relative",
        relative_buckets=whole(source, "relative_attention_num_buckets", 32),
        relative_max_distance=whole(source, "relative_attention_max_distance", 128),
        relative_shared=kind.relative_shared,
        max_positions=whole(source, "n_positions", _MAX_POSITIONS),
        scale_embedding=False,
        tie_output=tied,
        output_bias=bias is not None,
        pad_id=generation.pad_id,
        start_id=generation.pad_id if generation.start_id is None else generation.start_id,
        eos_id=generation.eos_id,
        unknown_id=unknown_id,
    )
    recipes = dict(_recipes(config))
    if not tied:
        recipes["output.weight"] = [_OUTPUT]
    if bias is not None:
        recipes["output.bias"] = bias
    if flag(source, "scale_decoder_outputs", kind.scaled and flag(source, "tie_word_embeddings", True)):
        # The scale of the output is put into the last weight before it.
        recipes["decoder_norm.weight"] = weights.read(_LAST_NORM).astype(np.float32) * config.d_model**-0.5
    ignored = frozenset({_SHARED, _OUTPUT, _UNUSED, _LAST_NORM}) | _COPIES
    return Network(config, recipes, ignored)


def _kind(source: Source) -> _Kind:
    return _KINDS[source.config["model_type"]]


def _size(source: Source, key: str) -> int:
    return whole(source, key, _kind(source).defaults[key])


def _generation(source: Source) -> Generation:
    return read_generation(source, pad_id=0, eos_id=1, start_id=None)


def _feed_forward(source: Source) -> tuple[Activation, bool]:
    """Find the activation, and whether it is gated; newer files have two further keys for these.

    Raises:
        DataError: the feed-forward layer has another form.
    """
    file = source.folder / CONFIG
    named = source.config.get("feed_forward_proj") or _kind(source).feed_forward
    gate, _, name = str(named).rpartition("-")
    # The first model with "gated-gelu" defined its meaning.
    name = "gelu_new" if named == "gated-gelu" else name
    name = source.config.get("dense_act_fn") or name
    if gate not in ("", "gated") or name not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise DataError(f"{file}: feed_forward_proj is {named!r:.60}; supported are {known}, and gated- before them")
    return ACTIVATIONS[name], flag(source, "is_gated_act", gate == "gated")


def _is_tied(source: Source, weights: Weights) -> bool:
    """Tell whether the embedding is also the output weight: by the tensors, since some files have the wrong flag.

    Raises:
        DataError: there is no embedding, encoder and decoder have different ones, or the last norm is missing.
    """
    there = set(weights.names)
    for name in (_SHARED, _LAST_NORM):
        if name not in there:
            raise DataError(f"{source.folder}: the weights have no {name}")
    for copy in sorted(_COPIES & there):
        if not are_equal(weights, copy, _SHARED):
            raise DataError(f"{source.folder}: {copy} is not {_SHARED}; models of this family have one embedding")
    return _OUTPUT not in there or are_equal(weights, _OUTPUT, _SHARED)


def _recipes(config: TransformerConfig) -> Iterator[tuple[str, Recipe]]:
    yield "source_embedding.weight", [_SHARED]
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        yield f"{side}_norm.weight", [f"{side}.final_layer_norm.weight"]
        blocks = [f"{side}.block.{layer}.layer" for layer in range(layers)]
        with_table = blocks[:1] if config.relative_shared else blocks
        yield f"{side}_bias.table", [f"{block}.0.SelfAttention.relative_attention_bias.weight" for block in with_table]
        for layer, block in enumerate(blocks):
            yield from _attention(f"{side}.{layer}.self", f"{block}.0", "SelfAttention", "query_key_value")
            if side == "decoder":
                yield from _attention(f"{side}.{layer}.cross", f"{block}.1", "EncDecAttention", "key_value")
                yield f"{side}.{layer}.cross_attention.query.weight", [f"{block}.1.EncDecAttention.q.weight"]
            last = f"{block}.{2 if side == 'decoder' else 1}"
            yield from _feed_forward_weights(f"{side}.{layer}.feed_forward", last, gated=config.gated)


def _attention(ours: str, theirs: str, name: str, packed: str) -> Iterator[tuple[str, Recipe]]:
    parts = "qkv" if packed == "query_key_value" else "kv"
    yield f"{ours}_attention.{packed}.weight", [f"{theirs}.{name}.{part}.weight" for part in parts]
    yield f"{ours}_attention.output.weight", [f"{theirs}.{name}.o.weight"]
    yield f"{ours}_residual.norm.weight", [f"{theirs}.layer_norm.weight"]


def _feed_forward_weights(ours: str, theirs: str, *, gated: bool) -> Iterator[tuple[str, Recipe]]:
    inner = ("wi_0", "wi_1") if gated else ("wi",)
    yield f"{ours}.expand.weight", [f"{theirs}.DenseReluDense.{name}.weight" for name in inner]
    yield f"{ours}.contract.weight", [f"{theirs}.DenseReluDense.wo.weight"]
    yield f"{ours}_residual.norm.weight", [f"{theirs}.layer_norm.weight"]


T5: Final = Family("T5", check, texts, network)
MT5: Final = Family("mT5", check, texts, network)
UMT5: Final = Family("umT5", check, texts, network)
