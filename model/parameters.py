"""Names and shapes of a model's weights, from its configuration alone; needs no torch."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from dragoman.errors import BundleError
from model.config import TransformerConfig

Shape = tuple[int, ...]

_FAULTS: Final = 20  # maximum number of listed mismatches


def parameter_shapes(config: TransformerConfig) -> dict[str, Shape]:
    """Give the shape of every weight of `model.transformer.Transformer`, by name; a tied weight has its first name."""
    return dict(_parameters(config))


def compare_shapes(config: TransformerConfig, shapes: Mapping[str, Sequence[int]], origin: Path) -> None:
    """Compare the names and shapes of weights with those of a configuration.

    Raises:
        BundleError: names or shapes do not match; the message lists the first ones.
    """
    wanted = parameter_shapes(config)
    faults = [f"missing {name}" for name in wanted.keys() - shapes.keys()]
    faults += [f"unknown {name}" for name in shapes.keys() - wanted.keys()]
    faults += [
        f"{name} is {list(shapes[name])}, not {list(wanted[name])}"
        for name in wanted.keys() & shapes.keys()
        if tuple(shapes[name]) != wanted[name]
    ]
    if faults:
        more = [f"and {len(faults) - _FAULTS} more"] if len(faults) > _FAULTS else []
        told = "; ".join([*sorted(faults)[:_FAULTS], *more])
        raise BundleError(f"{origin}: weights do not fit the configuration: {told}")


def _parameters(config: TransformerConfig) -> Iterator[tuple[str, Shape]]:
    d_model = config.d_model
    yield "source_embedding.weight", (config.source_vocabulary_size, d_model)
    if not config.share_embeddings:
        yield "target_embedding.weight", (config.target_vocabulary_size, d_model)
    if config.positions == "relative":
        for side, heads, layers in (
            ("encoder", config.heads, config.encoder_layers),
            ("decoder", config.decoder_head_count, config.decoder_layers),
        ):
            tables = 1 if config.relative_shared else layers
            yield f"{side}_bias.table", (tables * config.relative_buckets, heads)
    for side in ("source", "target"):
        if config.positions == "learned":
            yield f"{side}_positions.table", (config.max_positions + config.position_offset, d_model)
        if config.embedding_norm:
            yield from _norm(config, f"{side}_norm")
    for layer in range(config.encoder_layers):
        path = f"encoder.{layer}"
        yield from _self_attention(config, path, config.heads)
        yield from _layer(config, path, config.d_ff)
    for layer in range(config.decoder_layers):
        path, heads = f"decoder.{layer}", config.decoder_head_count
        if config.decoder_cell == "ssru":
            yield from _linear(config, f"{path}.recurrence.gate_input", 2 * d_model, d_model)
        else:
            yield from _self_attention(config, path, heads)
        yield from _layer(config, path, config.decoder_d_ff or config.d_ff)
        width = heads * config.head_dim_of(heads)
        yield from _linear(config, f"{path}.cross_attention.query", width, d_model)
        yield from _linear(config, f"{path}.cross_attention.key_value", 2 * width, d_model)
        yield from _linear(config, f"{path}.cross_attention.output", d_model, width)
        yield from _norm(config, f"{path}.cross_residual.norm")
    if config.norm == "pre":
        yield from _norm(config, "encoder_norm")
        yield from _norm(config, "decoder_norm")
    if not config.tie_output:
        yield "output.weight", (config.target_vocabulary_size, d_model)
    if config.output_bias:
        yield "output.bias", (config.target_vocabulary_size,)


def _self_attention(config: TransformerConfig, path: str, heads: int) -> Iterator[tuple[str, Shape]]:
    width = heads * config.head_dim_of(heads)
    yield from _linear(config, f"{path}.self_attention.query_key_value", 3 * width, config.d_model)
    yield from _linear(config, f"{path}.self_attention.output", config.d_model, width)


def _layer(config: TransformerConfig, path: str, d_ff: int) -> Iterator[tuple[str, Shape]]:
    """List the weights that encoder and decoder layers share."""
    d_model = config.d_model
    yield from _norm(config, f"{path}.self_residual.norm")
    yield from _linear(config, f"{path}.feed_forward.expand", 2 * d_ff if config.gated else d_ff, d_model)
    yield from _linear(config, f"{path}.feed_forward.contract", d_model, d_ff)
    yield from _norm(config, f"{path}.feed_forward_residual.norm")


def _linear(config: TransformerConfig, path: str, outputs: int, inputs: int) -> Iterator[tuple[str, Shape]]:
    yield f"{path}.weight", (outputs, inputs)
    if config.bias:
        yield f"{path}.bias", (outputs,)


def _norm(config: TransformerConfig, path: str) -> Iterator[tuple[str, Shape]]:
    yield f"{path}.weight", (config.d_model,)
    if config.norm_kind == "layer":
        yield f"{path}.bias", (config.d_model,)
