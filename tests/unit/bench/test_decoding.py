"""A decode batch without a server, on the synthetic model."""

import pytest

from bench.decoding import Batch, Graphs
from bench.sentences import random_sentences
from tests.synthetic import Synthetic

pytestmark = pytest.mark.torch


def test_tokens_are_counted_with_their_ends(fp32: Synthetic) -> None:
    sentences = random_sentences(fp32.bundle.manifest, [5, 7, 9], [20, 20, 2])
    batch = Batch(Graphs.resident(fp32.bundle, "cpu"), 2)
    expected = sum(min(len(ids) + 1, limit) for ids, limit in zip(batch.decode(sentences), [20, 20, 2], strict=True))
    assert batch.count_tokens(sentences) == expected


def test_a_step_is_counted_with_its_rows(fp32: Synthetic) -> None:
    manifest = fp32.bundle.manifest
    batch = Batch(Graphs.on_host(fp32.bundle).endless(), 4)
    before = batch.steps
    batch.decode(random_sentences(manifest, [5, 7, 9], [2, 2, 2]))
    steps, seconds, rows = (batch.steps - before).tolist()
    assert (steps, rows) == (2, 6)
    assert seconds > 0


def test_endless_sentences_end_at_their_limits(fp32: Synthetic) -> None:
    sentences = random_sentences(fp32.bundle.manifest, [5, 7], [4, 11])
    graphs = Graphs.on_host(fp32.bundle).endless()
    assert list(map(len, Batch(graphs, 1).decode(sentences))) == [4, 11]
