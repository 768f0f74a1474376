"""What is seen within the graphs of whole sentences, against hooks on the layers of plain PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from export.examples import Example, batches
from export.teacher import Seen, Teacher
from export.weights import WeightsFile
from model.inspection.attention_maps import attention_maps
from model.transformer import Transformer
from tests.plain_pytorch import parameters_of
from tests.unit.export.written import taught

Floats = NDArray[np.float32]
MODELS: dict[str, dict[str, Any]] = {
    "default": {},
    "post-norm": {"norm": "post", "positions": "learned", "position_offset": 2, "embedding_norm": True},
    "t5": {
        "positions": "relative", "relative_buckets": 6, "relative_max_distance": 5, "norm_kind": "rms", "bias": False,
        "scale_attention": False, "scale_embedding": False, "attention_head_dim": 8, "gated": True,
    },
    "a table a layer": {"positions": "relative", "relative_shared": False},
    "other heads": {"heads": 4, "decoder_heads": 1, "decoder_d_ff": 24},
    "ssru": {"decoder_cell": "ssru"},
    "firefox": {"decoder_cell": "ssru", "norm": "post", "share_embeddings": False, "source_vocabulary_size": 300},
    "tied": {"tie_output": True},
}  # fmt: skip
every = pytest.mark.parametrize("fields", MODELS.values(), ids=MODELS)


def example(source: int, target: int) -> Example:
    """Random ids, always the same of a size."""
    chance = np.random.default_rng((source, target))
    return Example([*chance.integers(4, 300, source - 1).tolist(), 2], [1, *chance.integers(4, 300, target - 1)])


def see(model: Transformer, examples: Sequence[Example]) -> list[Seen]:
    return list(taught(parameters_of(model)).run(batches(examples, 0)))


@torch.inference_mode()
def hooked(model: Transformer, one: Example) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """What each linear layer reads of a sentence alone, and what it gives."""
    read: dict[str, Floats] = {}
    made: dict[str, Floats] = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
            read[name], made[name] = inputs[0][0].numpy(), output[0].numpy()

        return hook

    handles = [
        layer.register_forward_hook(keep(name)) for name, layer in model.named_modules() if isinstance(layer, nn.Linear)
    ]
    model(torch.tensor([one.source]), torch.tensor([len(one.source)]), torch.tensor([one.target]))
    for handle in handles:
        handle.remove()
    return read, made


def compare(seen: Seen, model: Transformer, examples: Sequence[Example]) -> None:
    """Compare each row of a batch with its sentence alone."""
    for row, one in enumerate(examples):
        read, made = hooked(model, one)
        assert seen.read.keys() == read.keys()
        assert seen.made.keys() == {name for name in made if name.startswith("decoder") and "key_value" in name}
        for all_rows, alone in ((seen.read, read), (seen.made, made)):
            for name, values in all_rows.items():
                expected = alone[name]
                np.testing.assert_allclose(values[row, : len(expected)], expected, atol=5e-4, rtol=1e-4, err_msg=name)
        maps = [each.weights for each in attention_maps(model, *one) if each.title.endswith("to the source")]
        assert len(seen.attention) == len(maps)
        for attention, weights in zip(seen.attention, maps, strict=True):
            _, target, source = weights.shape
            np.testing.assert_allclose(attention[row, :, :target, :source], weights, atol=2e-4)
            assert not attention[row, :, :, source:].any()


@every
def test_what_is_seen_in_a_batch_is_what_happens_to_each_sentence_alone(
    random_model: Callable[..., Transformer], fields: dict[str, Any]
) -> None:
    model, examples = random_model(2, 2, **fields), [example(7, 4), example(3, 9), example(1, 1)]
    [seen] = see(model, examples)
    compare(seen, model, examples)


@pytest.mark.parametrize("fields", [{}, {"decoder_cell": "ssru"}], ids=["attention", "ssru"])
def test_sentences_of_every_length_up_to_the_limit(
    random_model: Callable[..., Transformer], fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recurrence is taken two positions at a time, then four: the borders are tried."""
    monkeypatch.setattr("export.examples.BATCH", 1)
    model = random_model(1, 1, **fields)
    if fields:
        with torch.no_grad():  # the first positions are still known at the last
            model.get_parameter("decoder.0.recurrence.gate_input.bias")[:32] += 6
    examples = [example(length, length) for length in (1, 2, 3, 4, 5, 8, 9, 31, 160)]
    for seen, one in zip(see(model, examples), examples, strict=True):
        compare(seen, model, [one])


def test_batches_come_in_their_order(random_model: Callable[..., Transformer], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("export.examples.BATCH", 2)
    model, examples = random_model(1, 1), [example(size, size + 1) for size in (5, 2, 7)]
    first, second = see(model, examples)
    assert [seen.batch.source_lengths.tolist() for seen in (first, second)] == [[5, 2], [7]]
    assert [seen.batch.target_lengths.tolist() for seen in (first, second)] == [[6, 3], [8]]
    compare(first, model, examples[:2])
    compare(second, model, examples[2:])


def test_two_models_that_are_open_do_not_mix(random_model: Callable[..., Transformer]) -> None:
    """Their tables have the same sizes and places; sessions share those of one file."""
    models = [random_model(1, 1), random_model(1, 1)]
    with torch.no_grad():
        models[1].source_embedding.weight.neg_()
    teachers = [taught(parameters_of(model)) for model in models]
    for model, teacher in zip(models, teachers, strict=True):
        [seen] = teacher.run(batches([example(5, 4)], 0))
        compare(seen, model, [example(5, 4)])


@pytest.mark.parametrize("tied", [True, False])
def test_no_logits_are_computed(random_model: Callable[..., Transformer], tied: bool, tmp_path: Any) -> None:
    """With a vocabulary of 256,000 those of a batch are gigabytes."""
    parameters = parameters_of(random_model(1, 1, tie_output=tied))
    with WeightsFile(tmp_path) as weights:
        Teacher(parameters, tmp_path, weights)
    for file in tmp_path.glob("*.onnx"):
        graph = onnx.load(file, load_external_data=False).graph
        [table] = [one.name for one in graph.initializer if 400 in one.dims]  # of ids, which are looked up
        assert {node.op_type for node in graph.node if table in node.input} == {"Gather"}
