"""Weights, position encodings and attention of small random models, in numbers and pictures."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.bundle import AlignmentHeads
from model.config import TransformerConfig
from model.inspection import heatmaps, plots
from model.inspection.attention_maps import attention_maps
from model.inspection.parameters import parameters_by_part
from model.transformer import Transformer

SOURCE, TARGET = [5, 6, 7, 2], [1, 8, 9]


def model_of(**fields: Any) -> Transformer:
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"d_model": 16, "heads": 2, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 1}
    return Transformer(TransformerConfig(source_vocabulary_size=20, target_vocabulary_size=20, **sizes | fields)).eval()


def test_every_weight_is_counted_once_and_in_its_part() -> None:
    model = model_of()
    counts = parameters_by_part(model)
    assert sum(counts.values()) == sum(parameter.numel() for parameter in model.parameters())
    assert counts["source embedding"] == 20 * 16
    assert counts["encoder layers: self attention"] == 2 * (4 * 16 * 16 + 4 * 16)
    assert counts["decoder layers: cross norm"] == 2 * 16
    assert "output" not in counts  # tied
    assert parameters_by_part(model_of(tie_output=False))["output"] == 20 * 16


@pytest.mark.parametrize("fields", [{}, {"decoder_heads": 4}, {"positions": "relative", "scale_attention": False}])
def test_attention_is_what_the_model_computes(fields: dict[str, Any]) -> None:
    model = model_of(**fields)
    outputs: dict[str, torch.Tensor] = {}
    values: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if name.endswith(".attend"):
            module.register_forward_hook(lambda _, inputs, output, name=name: outputs.__setitem__(name, output))
            module.register_forward_pre_hook(lambda _, inputs, name=name: values.__setitem__(name, inputs))
    maps = attention_maps(model, SOURCE, TARGET)
    assert [each.title for each in maps] == [
        "encoder layer 0",
        "encoder layer 1",
        "decoder layer 0, to the target",
        "decoder layer 0, to the source",
    ]
    for each, (name, output) in zip(maps, outputs.items(), strict=True):
        packed = values[name][1 if "cross" in name else 0]
        value = packed.chunk(2 if "cross" in name else 3, dim=-1)[-1][0]
        heads = each.weights.shape[0]
        by_head = value.view(len(value), heads, -1).transpose(0, 1)
        torch.testing.assert_close((each.weights @ by_head).transpose(0, 1).flatten(1), output[0])
        torch.testing.assert_close(each.weights.sum(-1), torch.ones(each.weights.shape[:2]))


def test_a_recurrence_attends_to_the_source_alone() -> None:
    maps = attention_maps(model_of(decoder_cell="ssru"), SOURCE, TARGET)
    assert [each.title for each in maps] == ["encoder layer 0", "encoder layer 1", "decoder layer 0, to the source"]
    assert parameters_by_part(model_of(decoder_cell="ssru"))["decoder layers: recurrence"] == 2 * 16 * (16 + 1)


def test_a_target_sees_nothing_that_comes_later() -> None:
    [own] = [each for each in attention_maps(model_of(), SOURCE, TARGET) if each.title.endswith("to the target")]
    assert bool((own.weights.triu(1) == 0).all())


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "sinusoidal_paper_halves", "learned", "relative"])
def test_every_kind_of_positions_has_a_picture(kind: str, tmp_path: Path) -> None:
    figure = plots.positions_figure(model_of(positions=kind))
    assert all(kind in axis.get_title() for axis in figure.axes[:2])
    heatmaps.save(figure, tmp_path / "positions.png")
    assert (tmp_path / "positions.png").read_bytes().startswith(b"\x89PNG")


def test_heads_that_align_are_marked_in_the_overview() -> None:
    maps = attention_maps(model_of(decoder_layers=2), SOURCE, TARGET)
    pieces = {"source": list("abcd"), "target": list("xyz")}
    figure = plots.attention_figure(maps, pieces, AlignmentHeads(layer=1, heads=(1,)))
    marked = [axis.get_title() for axis in figure.axes if axis.get_title().endswith("aligns")]
    assert marked == ["decoder layer 1, to the source, head 1: aligns"]
    assert not any("aligns" in axis.get_title() for axis in plots.attention_figure(maps, pieces).axes)


@pytest.mark.parametrize("target", [["x"], ["x", "y", "z"]])
def test_the_alignment_has_a_row_for_each_token_of_a_translation(target: list[str], tmp_path: Path) -> None:
    weights = [[0.25, 0.75]] * len(target)
    figure = heatmaps.alignment_figure(weights, ["a", "b"], target)
    axis = figure.axes[0]
    assert axis.images[0].get_array().tolist() == weights
    assert [label.get_text() for label in axis.get_yticklabels()] == target
    heatmaps.save(figure, tmp_path / "alignment.png")
    assert (tmp_path / "alignment.png").read_bytes().startswith(b"\x89PNG")
