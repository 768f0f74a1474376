"""A checkpoint as a CTranslate2 model: the very same weights under the names that CTranslate2 gives them."""

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


def convert(checkpoint: Checkpoint, out: Path) -> Path:
    """Write the CTranslate2 model, in fp32: it is quantized as it is loaded."""
    spec = _spec(checkpoint)
    spec.validate()
    spec.optimize()
    out.mkdir(parents=True)
    spec.save(str(out))
    return out


def vocabulary(file: Path) -> list[str]:
    """Return the pieces of a SentencePiece model, by id: CTranslate2 takes and gives pieces instead of ids."""
    processor = SentencePieceProcessor(model_file=str(file))
    return [processor.id_to_piece(index) for index in range(processor.get_piece_size())]


def _spec(checkpoint: Checkpoint) -> Any:
    config, weights = checkpoint.config, _Weights(checkpoint.weights)
    spec = transformer_spec.TransformerSpec.from_config(
        (config["encoder_layers"], config["decoder_layers"]),
        config["heads"],
        pre_norm=config["norm"] == "pre",
        activation=_ACTIVATIONS[config["activation"]],
        layernorm_embedding=config["embedding_norm"],
    )
    _set_side(spec.encoder, spec.encoder.embeddings[0], checkpoint, "source")
    _set_side(spec.decoder, spec.decoder.embeddings, checkpoint, "target")
    for index, layer in enumerate(spec.encoder.layer):
        _set_encoder_layer(layer, weights.below(f"encoder.{index}."))
    for index, layer in enumerate(spec.decoder.layer):
        _set_decoder_layer(layer, weights.below(f"decoder.{index}."))
    if config["norm"] == "pre":
        weights.set_norm(spec.encoder.layer_norm, "encoder_norm")
        weights.set_norm(spec.decoder.layer_norm, "decoder_norm")
    spec.decoder.projection.weight = checkpoint.output_weight
    if config["output_bias"]:
        spec.decoder.projection.bias = weights["output.bias"]
    _set_vocabularies(spec, checkpoint)
    return spec


class _Weights(dict[str, Array]):
    """Weights of one part of the model, by the rest of their names."""

    def below(self, prefix: str) -> "_Weights":
        return _Weights({name.removeprefix(prefix): w for name, w in self.items() if name.startswith(prefix)})

    def set_norm(self, spec: Any, name: str) -> None:
        spec.gamma = self[f"{name}.weight"]
        spec.beta = self[f"{name}.bias"]

    def set_linear(self, spec: Any, name: str) -> None:
        spec.weight = self[f"{name}.weight"]
        spec.bias = self[f"{name}.bias"]

    def set_feed_forward(self, spec: Any) -> None:
        self.set_norm(spec.layer_norm, "feed_forward_residual.norm")
        self.set_linear(spec.linear_0, "feed_forward.expand")
        self.set_linear(spec.linear_1, "feed_forward.contract")

    def set_self_attention(self, spec: Any) -> None:
        """Set a self-attention: both sides pack queries, keys and values into one product, in this order."""
        self.set_norm(spec.layer_norm, "self_residual.norm")
        self.set_linear(spec.linear[0], "self_attention.query_key_value")
        self.set_linear(spec.linear[1], "self_attention.output")


def _set_side(spec: Any, embeddings: Any, checkpoint: Checkpoint, side: str) -> None:
    """Set embeddings, positions and what is done with them, of the encoder or the decoder."""
    source = side == "source"
    embeddings.weight = checkpoint.weights["source_embedding.weight"] if source else checkpoint.target_embedding
    spec.scale_embeddings = checkpoint.config["scale_embedding"]
    spec.position_encodings.encodings = checkpoint.positions(side)
    if checkpoint.config["embedding_norm"]:
        _Weights(checkpoint.weights).set_norm(spec.layernorm_embedding, f"{side}_norm")


def _set_encoder_layer(spec: Any, weights: _Weights) -> None:
    weights.set_self_attention(spec.self_attention)
    weights.set_feed_forward(spec.ffn)


def _set_decoder_layer(spec: Any, weights: _Weights) -> None:
    weights.set_self_attention(spec.self_attention)
    weights.set_norm(spec.attention.layer_norm, "cross_residual.norm")
    weights.set_linear(spec.attention.linear[0], "cross_attention.query")
    weights.set_linear(spec.attention.linear[1], "cross_attention.key_value")
    weights.set_linear(spec.attention.linear[2], "cross_attention.output")
    weights.set_feed_forward(spec.ffn)


def _set_vocabularies(spec: Any, checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    source, target = map(vocabulary, checkpoint.tokenizer_files())
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[config["unknown_id"]]
    spec.config.bos_token = spec.config.decoder_start_token = target[config["start_id"]]
    spec.config.eos_token = target[config["eos_id"]]
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
