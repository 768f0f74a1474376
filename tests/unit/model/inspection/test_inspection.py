"""What `dragoman inspect` shows, on small random models."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.cli import main
from model.config import TransformerConfig
from model.inspection import plots
from model.inspection.attention_maps import attention_maps
from model.inspection.parameters import parameters_by_part
from model.transformer import Transformer

ROOT = Path(__file__).parents[4]
CHECKPOINT = ROOT / "models" / "en-de" / "checkpoint"
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


def test_a_target_sees_nothing_that_comes_later() -> None:
    [own] = [each for each in attention_maps(model_of(), SOURCE, TARGET) if each.title.endswith("to the target")]
    assert bool((own.weights.triu(1) == 0).all())


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "sinusoidal_paper_halves", "learned", "relative"])
def test_every_kind_of_positions_has_a_picture(kind: str, tmp_path: Path) -> None:
    plots.use_files_only()
    figure = plots.positions_figure(model_of(positions=kind))
    assert all(kind in axis.get_title() for axis in figure.axes[:2])
    plots.save(figure, tmp_path / "positions.png")
    assert (tmp_path / "positions.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_prints_tables_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "attention.png"
    assert main(["inspect", str(CHECKPOINT), "--attention", str(file), "--text", "Good morning."]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = dict(line.split("  ", 1) for line in lines if "  " in line)
    config = json.loads((CHECKPOINT / "config.json").read_text())
    assert int(rows["d_model"]) == config["d_model"]
    assert rows["all parameters"].strip() == "8,894,464"
    assert lines[-1] == "Guten Morgen!"
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--attention", "x.png"], "--attention and --text need each other"),
        (
            ["--attention", "x.png", "--text", "a", "--target-language", "fr"],
            "the target language is fr: the model has de",
        ),
        (["--attention", "x.png", "--text", "a " * 600], "--text has 601 tokens, the model 512 positions"),
        (["--attention", "x.png", "--text", "a", "--translation", "b " * 600], "--translation has"),
    ],
)
def test_refuses_in_one_line(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["inspect", str(CHECKPOINT), *flags])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_folder_that_is_no_checkpoint_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path)]) == 2
    assert "no checkpoint (config.json)" in capsys.readouterr().err
