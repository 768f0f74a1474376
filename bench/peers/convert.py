"""A checkpoint as a CTranslate2 model: the very same weights under the names that CTranslate2 gives them."""

from collections.abc import Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from ctranslate2.specs import common_spec, transformer_spec
from sentencepiece import SentencePieceProcessor

from bench.peers.checkpoint import Array, Checkpoint

_ACTIVATIONS = {
    "relu": common_spec.Activation.RELU,
    "gelu": common_spec.Activation.GELU,
    "silu": common_spec.Activation.SWISH,
}
# Parts of a layer here, by where they are there.
_LAYER = {
    "self_attention.layer_norm": "self_residual.norm",
    "self_attention.linear.0": "self_attention.query_key_value",
    "self_attention.linear.1": "self_attention.output",
    "ffn.layer_norm": "feed_forward_residual.norm",
    "ffn.linear_0": "feed_forward.expand",
    "ffn.linear_1": "feed_forward.contract",
}
_CROSS = {
    "attention.layer_norm": "cross_residual.norm",
    "attention.linear.0": "cross_attention.query",
    "attention.linear.1": "cross_attention.key_value",
    "attention.linear.2": "cross_attention.output",
}


def converted(checkpoint: Checkpoint, work: Path) -> Path:
    """Return the CTranslate2 model of a checkpoint, made if it is not in the folder.

    It is in fp32: CTranslate2 quantizes it as it is loaded.
    """
    out, partial = work / "ctranslate2", work / "ctranslate2.partial"
    if not out.exists():
        spec = _spec(checkpoint)
        spec.validate()
        spec.optimize()
        partial.mkdir(parents=True, exist_ok=True)
        spec.save(str(partial))
        partial.rename(out)
    return out


def vocabulary(file: Path) -> list[str]:
    """Return the pieces of a SentencePiece model, by id: CTranslate2 takes and gives pieces instead of ids."""
    processor = SentencePieceProcessor(model_file=str(file))
    return [processor.id_to_piece(index) for index in range(processor.get_piece_size())]


def _spec(checkpoint: Checkpoint) -> Any:
    config, weights = checkpoint.config, checkpoint.weights
    spec = transformer_spec.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["heads"],
        pre_norm=config["norm"] == "pre",
        activation=_ACTIVATIONS[config["activation"]],
        layernorm_embedding=config["embedding_norm"],
    )
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = checkpoint.target_embedding
    for side, name, part in (("source", "encoder", spec.encoder), ("target", "decoder", spec.decoder)):
        part.scale_embeddings = config["scale_embedding"]
        part.position_encodings.encodings = checkpoint.positions(side)
        if config["embedding_norm"]:
            _set(part.layernorm_embedding, weights, f"{side}_norm")
        if config["norm"] == "pre":
            _set(part.layer_norm, weights, f"{name}_norm")
        for number, layer in enumerate(part.layer):
            for path, ours in (_LAYER if side == "source" else _LAYER | _CROSS).items():
                _set(reduce(_part, path.split("."), layer), weights, f"{name}.{number}.{ours}")
    spec.decoder.projection.weight = checkpoint.output_weight
    if config["output_bias"]:
        spec.decoder.projection.bias = weights["output.bias"]
    _set_vocabularies(spec, checkpoint)
    return spec


def _part(spec: Any, name: str) -> Any:
    return spec[int(name)] if name.isdigit() else getattr(spec, name)


def _set(spec: Any, weights: Mapping[str, Array], name: str) -> None:
    """Set a norm or a linear layer; both sides pack queries, keys and values into one product, in this order."""
    names = ("gamma", "beta") if name.endswith("norm") else ("weight", "bias")
    for theirs, ours in zip(names, ("weight", "bias"), strict=True):
        setattr(spec, theirs, weights[f"{name}.{ours}"])


def _set_vocabularies(spec: Any, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    source, target = map(vocabulary, checkpoint.tokenizer_files())
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[config["unknown_id"]]
    spec.config.bos_token = spec.config.decoder_start_token = target[config["start_id"]]
    spec.config.eos_token = target[config["eos_id"]]
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
