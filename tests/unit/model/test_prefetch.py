"""The process that makes batches: the same as are made here, from any place on; what its end means."""

import multiprocessing
from pathlib import Path

import pytest

from dragoman.errors import DataError
from model.batches import SpecialIds
from model.prefetch import StreamPlan, prefetch
from model.store import store
from model.stream import Stream, StreamOptions


@pytest.fixture
def plan(tmp_path: Path, tokenizer_folder: Path) -> StreamPlan:
    (tmp_path / "train.tsv").write_text("".join(f"the train {n}\tder Zug {n}\n" for n in range(500)))
    store([tmp_path / "train.tsv"], tmp_path / "corpus", filters=False)
    options = StreamOptions(1, {}, {"typos": 0.5, "copies": 0.5}, 4, 99, 100)
    return StreamPlan(tmp_path / "corpus", tokenizer_folder, SpecialIds(0, 1, 2), options)


@pytest.mark.parametrize("processes", [1, 3])
def test_the_same_pools_epoch_after_epoch(plan: StreamPlan, processes: int) -> None:
    stream = Stream(*plan)
    places = [(1, 1), *((epoch, n) for epoch in (2, 3, 4) for n in range(stream.pool_count(epoch)))]
    expected = [(epoch, n, stream.pool(epoch, n)) for epoch, n in places]
    with prefetch(plan, 1, 1, processes) as pools:
        for (epoch, number, pool), found in zip(expected, pools, strict=False):
            assert (found.epoch, found.number, found.pool.too_long) == (epoch, number, pool.too_long)
            assert len(found.pool.batches) == len(pool.batches)
            for mine, its in zip(pool.batches, found.pool.batches, strict=True):
                assert all((a == b).all() for a, b in zip(mine, its, strict=True))
    assert not multiprocessing.active_children()


def test_the_process_ends_with_the_block(plan: StreamPlan) -> None:
    with pytest.raises(KeyError), prefetch(plan, 0, 0):
        raise KeyError
    assert not multiprocessing.active_children()


def test_a_process_that_ends_is_an_error(plan: StreamPlan) -> None:
    with prefetch(plan, 0, 0) as pools:
        next(pools)
        [process] = multiprocessing.active_children()
        process.kill()
        with pytest.raises(DataError, match="the process that makes batches ended with code -9"):
            list(pools)
