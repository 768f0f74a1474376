"""The two rounds against torch's own argmax, equal values included; the exported form against the eager one."""

from pathlib import Path

import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from export.argmax import argmax, block_size


@given(
    rows=st.integers(1, 5),
    values=st.integers(1, 700),
    levels=st.sampled_from([1, 2, 1000]),
    seed=st.integers(0, 2**32),
)
def test_the_first_of_the_largest(rows: int, values: int, levels: int, seed: int) -> None:
    logits = torch.randint(levels, (rows, values), generator=torch.Generator().manual_seed(seed)).float()
    expected = [row.index(max(row)) for row in logits.tolist()]  # torch does not promise the first of equals
    assert argmax(logits).tolist() == expected


@pytest.mark.parametrize(("values", "size"), [(8000, 125), (58_101, 107), (256_206, 128), (65_537, 128), (4, 128)])
def test_block_size(values: int, size: int) -> None:
    assert block_size(values) == size


class Graph(torch.nn.Module):
    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return argmax(logits)


def test_nothing_is_chosen_of_the_padding() -> None:
    assert argmax(torch.full((2, 601), -torch.inf)).tolist() == [0, 0]


@pytest.mark.parametrize("values", [600, 601])
def test_exported_it_is_the_same(values: int, tmp_path: Path) -> None:
    program = torch.onnx.export(
        Graph(),
        (torch.zeros(2, values),),
        input_names=["logits"],
        dynamic_shapes=({0: torch.export.Dim("rows")},),
        dynamo=True,
        opset_version=20,
        verbose=False,
    )
    assert program is not None
    program.save(tmp_path / "argmax.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "argmax.onnx", providers=["CPUExecutionProvider"])
    logits = torch.randint(20, (7, values), generator=torch.Generator().manual_seed(1)).float()
    [ids] = session.run(None, {"logits": logits.numpy()})
    assert ids.tolist() == argmax(logits).tolist()
