"""Batches of a corpus: which pairs, in which order, and the same for the same place."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman.tokenizer import Tokenizer
from model.batches import Arrays, SpecialIds
from model.corpus import Corpus
from model.store import Store, store
from model.stream import Pairs, Pool, Stream, StreamOptions, pool_size

IDS = SpecialIds(pad=0, start=1, eos=2)
PLAIN = StreamOptions(seed=1, weights={}, augment={}, candidates=1, max_tokens=999, batch_tokens=100)
ALL_KINDS = StreamOptions(
    seed=1,
    weights={"train": 1.5},
    augment={"join": 0.3, "typos": 0.3, "lower": 0.3, "copies": 0.3, "stand-ins": 0.3, "emoji": 0.3},
    candidates=4,
    max_tokens=60,
    batch_tokens=100,
)
Open = Callable[[StreamOptions], Stream]


@pytest.fixture(scope="module")
def folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of 450 pairs: a pool of these options has 400."""
    made = tmp_path_factory.mktemp("stream")
    lines = [f"{source}\t{target}\n" for source, target in zip(corpus.sources, corpus.targets, strict=True)]
    (made / "train.tsv").write_text("".join(lines[:450]), encoding="utf-8")
    store([made / "train.tsv"], made / "corpus", filters=False)
    return made / "corpus"


@pytest.fixture
def opened(folder: Path, tokenizer_folder: Path) -> Open:
    return lambda options: Stream(folder, tokenizer_folder, IDS, options)


def rows(pools: list[Pool]) -> list[tuple[list[int], list[int]]]:
    """Ids of every pair, without padding."""
    return [
        ([*filter(None, source)], [*filter(None, target)])
        for pool in pools
        for batch in pool.batches
        for source, target in zip(batch.source.tolist(), batch.target_out.tolist(), strict=True)
    ]


def same(one: list[Pool], other: list[Pool]) -> bool:
    def arrays(pools: list[Pool]) -> list[Arrays]:
        return [batch for pool in pools for batch in pool.batches]

    pairs = zip(arrays(one), arrays(other), strict=True)
    return all(
        (a == b).all() for mine, others in pairs for a, b in zip(mine, others, strict=True) if a.shape == b.shape
    )


def pools_of(stream: Stream, epoch: int, first: int = 0) -> list[Pool]:
    return [stream.pool(epoch, number) for number in range(first, stream.pool_count(epoch))]


def test_an_epoch_has_every_pair_once(opened: Open, folder: Path, tokenizer: Tokenizer) -> None:
    pools = pools_of(opened(PLAIN), 0)
    assert [sum(len(batch.source) for batch in pool.batches) for pool in pools] == [
        pool_size(100),
        450 - pool_size(100),
    ]
    held = Store(folder)
    pairs = [held.pair(row) for row in range(len(held))]
    expected = [([*tokenizer.encode(s), 2], [*tokenizer.encode_target(t), 2]) for s, t in pairs]
    assert sorted(rows(pools)) == sorted(expected)
    assert [pool.too_long for pool in pools] == [0, 0]


def test_pairs_that_are_too_long_are_counted(opened: Open, folder: Path, tokenizer: Tokenizer) -> None:
    pools = pools_of(opened(replace(PLAIN, max_tokens=40)), 0)
    held = Store(folder)
    pairs = [held.pair(row) for row in range(len(held))]
    long = sum(max(len(tokenizer.encode(s)), len(tokenizer.encode_target(t))) >= 40 for s, t in pairs)
    assert 0 < long < 450
    assert sum(pool.too_long for pool in pools) == long
    assert len(rows(pools)) == 450 - long


@pytest.mark.parametrize("options", [PLAIN, ALL_KINDS])
def test_a_pool_is_a_function_of_its_place(opened: Open, options: StreamOptions) -> None:
    stream = opened(options)
    first, second = pools_of(stream, 0), pools_of(stream, 1)
    again = opened(options)
    assert same(pools_of(again, 1, 1), second[1:])
    assert same(pools_of(again, 0, 1), first[1:])
    assert rows(first) != rows(second)
    assert rows(pools_of(opened(replace(options, seed=2)), 0)) != rows(first)


def test_segmentations_are_drawn_the_best_most_often(opened: Open, folder: Path, tokenizer: Tokenizer) -> None:
    held = Store(folder)
    rank_of = {
        tuple(ids): rank
        for row in range(len(held))
        for rank, ids in enumerate(tokenizer.candidates(held.pair(row)[0], 4))
    }
    stream = opened(replace(PLAIN, candidates=4))
    drawn = Counter(rank_of[tuple(ids[:-1])] for epoch in range(4) for ids, _ in rows(pools_of(stream, epoch)))
    assert drawn[0] > drawn[1] > drawn[2] > drawn[3] > 0


def test_a_sample_is_in_the_order_of_the_corpus(folder: Path) -> None:
    held = Store(folder)
    pairs = Pairs(held, PLAIN)
    everything = pairs.sample(1000)
    assert list(zip(everything.sources, everything.targets, strict=True)) == [held.pair(row) for row in range(450)]
    part = pairs.sample(30)
    assert len(part) == 30
    assert [source for source in everything.sources if source in part.sources] >= part.sources
