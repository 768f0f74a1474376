"""Pictures of the position encodings and the attention of a checkpoint."""

from collections.abc import Sequence
from typing import Final, cast

import torch
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dragoman.bundle import AlignmentHeads
from model.inspection.attention_maps import AttentionMap
from model.inspection.heatmaps import heatmap
from model.relative import DistanceBias
from model.transformer import Transformer

_POSITIONS: Final = 128  # number of positions shown
_DISTANCES: Final = 64  # number of distances shown on each side
_MARK: Final = "tab:red"  # color of the alignment heads


def positions_figure(model: Transformer) -> Figure:
    """Draw the position encodings of both sides: one row per position, or the bias of each head by distance."""
    if model.config.positions == "relative":
        return _bias_figure(model)
    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", sharey=True)
    count = min(_POSITIONS, model.config.max_positions)
    for axis, side in zip(axes, ("source", "target"), strict=True):
        with torch.inference_mode():
            table = getattr(model, f"{side}_positions")(torch.arange(count))
        image = axis.imshow(table.numpy(), aspect="auto", cmap="RdBu", interpolation="nearest")
        axis.set_title(f"{side} ({model.config.positions})")
        axis.set_xlabel("dimension")
        figure.colorbar(image, ax=axis)
    axes[0].set_ylabel("position")
    return figure


def _bias_figure(model: Transformer) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", sharey=True)
    for axis, side, bias in zip(axes, ("encoder", "decoder"), (model.encoder_bias, model.decoder_bias), strict=True):
        assert isinstance(bias, DistanceBias)
        ids = torch.zeros(1, 2 * _DISTANCES + 1, dtype=torch.long)
        with torch.inference_mode():
            of_first_layer = cast(torch.Tensor, bias.of_sequences(ids)[0])
        of_middle = of_first_layer[0, :, _DISTANCES]  # [heads, keys]
        shown = _DISTANCES + 1 if side == "decoder" else 2 * _DISTANCES + 1
        for head, values in enumerate(of_middle[:, :shown].numpy()):
            axis.plot(range(-_DISTANCES, shown - _DISTANCES), values, label=f"head {head}")
        axis.set_title(f"{side} (relative)")
        axis.set_xlabel("position of the key less that of the query")
    axes[0].set_ylabel("added to the score")
    axes[0].legend(ncols=2, fontsize="small")
    return figure


def attention_figure(
    maps: Sequence[AttentionMap], pieces: dict[str, list[str]], alignment: AlignmentHeads | None = None
) -> Figure:
    """Draw a heatmap of every head, one row per layer.

    Args:
        maps: the attention of each layer.
        pieces: the tokens of "source" and "target".
        alignment: the heads to mark; None: none.
    """
    heads = max(each.weights.shape[0] for each in maps)
    longest = max(map(len, pieces.values()))
    size = 1.5 + 0.18 * longest
    figure, axes = plt.subplots(
        len(maps), heads, figsize=(heads * size, len(maps) * size), layout="constrained", squeeze=False
    )
    for row, each in zip(axes, maps, strict=True):
        for head, axis in enumerate(row):
            if head >= each.weights.shape[0]:
                axis.axis("off")
                continue
            heatmap(axis, each.weights[head].numpy(), pieces[each.queries], pieces[each.keys])
            axis.set_title(f"{each.title}, head {head}", fontsize=7)
            if alignment and each.is_of_decoder(alignment.layer) and head in alignment.heads:
                _mark(axis)
    return figure


def _mark(axis: Axes) -> None:
    """Mark a head as an alignment head."""
    axis.set_title(f"{axis.get_title()}: aligns", fontsize=7, color=_MARK, fontweight="bold")
    for spine in axis.spines.values():
        spine.set(color=_MARK, linewidth=2)
