from hypothesis import given
from hypothesis import strategies as st

from model.batches import SpecialIds, Tokenized, bucket, collate

IDS = SpecialIds(pad=0, start=1, eos=2)
SIDE = st.lists(st.integers(3, 99), max_size=30)
PAIRS = st.lists(st.builds(Tokenized, SIDE, SIDE), max_size=60)


@given(pairs=PAIRS, batch_tokens=st.integers(1, 300))
def test_every_pair_once_within_the_budget(pairs: list[Tokenized], batch_tokens: int) -> None:
    batches = list(bucket(pairs, batch_tokens))
    assert sorted(pair for batch in batches for pair in batch) == sorted(pairs)
    for batch in batches:
        arrays = collate(batch, IDS)
        for side in (arrays.source, arrays.target_in, arrays.target_out):
            assert side.size <= batch_tokens or len(batch) == 1


def test_batches_waste_little() -> None:
    pairs = [Tokenized([3] * (n % 17), [3] * (n % 23)) for n in range(2000)]
    sides = [collate(batch, IDS).target_out for batch in bucket(pairs, 1000)]
    assert sum((side == IDS.pad).sum() for side in sides) < 0.1 * sum(side.size for side in sides)


@given(pairs=PAIRS.filter(len))
def test_collate(pairs: list[Tokenized]) -> None:
    arrays = collate(pairs, IDS)
    for row, (source, target) in enumerate(pairs):
        length = int(arrays.source_lengths[row])
        assert arrays.source[row, :length].tolist() == [*source, IDS.eos]
        assert not arrays.source[row, length:].any()
        assert arrays.target_in[row].tolist()[: len(target) + 1] == [IDS.start, *target]
        assert arrays.target_out[row].tolist()[: len(target) + 1] == [*target, IDS.eos]
        assert not arrays.target_out[row, len(target) + 1 :].any()
