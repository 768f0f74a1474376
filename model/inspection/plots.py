"""Position encodings and attention as pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from model.inspection.attention_maps import AttentionMap
from model.relative import DistanceBias
from model.transformer import Transformer

_POSITIONS: Final = 128  # that are shown
_DISTANCES: Final = 64  # likewise, on each side


def save(figure: Figure, file: Path) -> None:
    """Write a figure as PNG, and let go of it."""
    figure.savefig(file, dpi=100)
    plt.close(figure)


def use_files_only() -> None:
    """Draw to files: there may be no screen."""
    mpl.use("Agg")


def positions_figure(model: Transformer) -> Figure:
    """Draw the position encodings of both sides: a row a position, or the bias of each head by distance."""
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


def attention_figure(maps: Sequence[AttentionMap], pieces: dict[str, list[str]]) -> Figure:
    """Draw a heatmap of every head: a row a layer.

    Args:
        maps: of each layer.
        pieces: the tokens of "source" and "target".
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
            axis.imshow(each.weights[head].numpy(), vmin=0, vmax=1, cmap="viridis", aspect="auto")
            axis.set_title(f"{each.title}, head {head}", fontsize=7)
            axis.set_xticks(range(len(pieces[each.keys])), pieces[each.keys], rotation=90, fontsize=6)
            axis.set_yticks(range(len(pieces[each.queries])), pieces[each.queries], fontsize=6)
    return figure
