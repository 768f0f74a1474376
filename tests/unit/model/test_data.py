import torch

from model.batches import SpecialIds, Tokenized, collate
from model.data import Batch, pad


def test_tensors_of_arrays() -> None:
    arrays = collate([Tokenized([5], [6, 7])], SpecialIds(pad=0, start=1, eos=2))
    batch = Batch.of(arrays)
    assert batch.source.tolist() == [[5, 2]]
    assert batch.target_out.tolist() == [[6, 7, 2]]
    assert {side.dtype for side in batch} == {torch.int64}


def test_pad() -> None:
    padded = pad([[5], [6, 7, 8], []], 9)
    assert padded.dtype == torch.int64
    assert padded.tolist() == [[5, 9, 9], [6, 7, 8], [9, 9, 9]]
