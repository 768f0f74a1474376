"""The attention of a model's heads, for one sentence and its translation."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from model.attention import AttendSelf, AttendSource, attention_weights, split_heads
from model.layers import DecoderLayer, EncoderLayer
from model.transformer import Transformer


class AttentionMap(NamedTuple):
    """The attention of one layer.

    Attributes:
        title: names the attention.
        weights: float [heads, queries, keys]; each row of keys adds up to 1.
        queries: the side that attends: "source" or "target".
        keys: the side that is attended to.
    """

    title: str
    weights: Tensor
    queries: str
    keys: str

    def is_of_decoder(self, layer: int) -> bool:
        """Tell whether this is the attention of a decoder layer to the source."""
        return self.title == _to_source(layer)


@torch.inference_mode()
def attention_maps(model: Transformer, source_ids: Sequence[int], target_ids: Sequence[int]) -> list[AttentionMap]:
    """Run a sentence and its translation through a model.

    Args:
        model: in evaluation mode.
        source_ids: the input ids of the encoder.
        target_ids: the input ids of the decoder, the start id first.

    Returns:
        The attention of every encoder layer, and of every decoder layer to the target and to the source. A decoder with
        a recurrence has no attention to the target.
    """
    maps: list[AttentionMap] = []

    def keep(attend: nn.Module, inputs: tuple[Any, ...], of: _Named) -> None:
        assert isinstance(attend, AttendSelf | AttendSource)
        maps.append(AttentionMap(of.title, _weights(attend, inputs), of.queries, of.keys))

    handles = [attend.register_forward_pre_hook(partial(keep, of=of)) for attend, of in _attentions(model)]
    try:
        model(torch.tensor([source_ids]), torch.tensor([len(source_ids)]), torch.tensor([target_ids]))
    finally:
        for handle in handles:
            handle.remove()
    return maps


class _Named(NamedTuple):
    title: str
    queries: str
    keys: str


def _attentions(model: Transformer) -> Iterator[tuple[nn.Module, _Named]]:
    """Find every attention of a model, with its description."""
    for number, layer in enumerate(cast(Iterable[EncoderLayer], model.encoder)):
        yield layer.self_attention.attend, _Named(f"encoder layer {number}", "source", "source")
    for number, other in enumerate(cast(Iterable[DecoderLayer], model.decoder)):
        if not other.recurs:
            yield other.self_attention.attend, _Named(f"decoder layer {number}, to the target", "target", "target")
        yield other.cross_attention.attend, _Named(_to_source(number), "target", "source")


def _to_source(layer: int) -> str:
    return f"decoder layer {layer}, to the source"


def _weights(attend: AttendSelf | AttendSource, inputs: tuple[Any, ...]) -> Tensor:
    """Compute the weights of an attention again, for one sentence without padding: [heads, queries, keys]."""
    bias, causal = None, False
    if isinstance(attend, AttendSelf):
        packed, lengths, *rest = inputs
        query, key, _ = packed.chunk(3, dim=-1)
        causal, bias = lengths is None, rest[0] if rest else None
    else:
        query, packed, _ = inputs
        key, _ = packed.chunk(2, dim=-1)
    mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool)
    query, key = split_heads(query, attend.heads), split_heads(key, attend.heads)
    mask = mask.tril() if causal else mask
    return attention_weights(query, key, mask, scaled=attend.scaled, bias=bias)[0]
