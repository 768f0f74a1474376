import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from model.attention import AttendSelf, AttendSource, attend, length_mask, split_heads

SIZES = st.integers(1, 6)


def test_length_mask() -> None:
    mask = length_mask(torch.tensor([2, 0, 3]), 3)
    assert mask.shape == (3, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [False] * 3, [True] * 3]


def test_split_heads_keeps_each_head_together() -> None:
    states = torch.arange(2 * 3 * 8).view(2, 3, 8)
    heads = split_heads(states, 4)
    assert heads.shape == (2, 4, 3, 2)
    assert heads[1, 2, 0].tolist() == states[1, 0, 4:6].tolist()


@settings(deadline=None, max_examples=30)
@given(batch=SIZES, heads=SIZES, queries=SIZES, keys=SIZES, seed=st.integers(0, 2**32))
def test_agrees_with_pytorch(batch: int, heads: int, queries: int, keys: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    query = torch.randn(batch, heads, queries, 4, generator=random)
    key, value = torch.randn(2, batch, heads, keys, 4, generator=random)
    mask = torch.rand(batch, 1, queries, keys, generator=random) < 0.6
    mask[..., 0] = True
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attend(query, key, value, mask), expected, atol=1e-5, rtol=1e-5)


@settings(deadline=None, max_examples=20)
@given(rows=SIZES, heads=SIZES, queries=SIZES, keys=SIZES, scaled=st.booleans(), seed=st.integers(0, 2**32))
def test_a_bias_and_no_scale_agree_with_pytorch(
    rows: int, heads: int, queries: int, keys: int, scaled: bool, seed: int
) -> None:
    random = torch.Generator().manual_seed(seed)
    query = torch.randn(2, heads, queries, 4, generator=random)
    key, value = torch.randn(2, 2, heads, keys, 4, generator=random)
    bias = torch.randn(min(rows, 2), heads, queries, keys, generator=random)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=bias, scale=None if scaled else 1.0)
    everything = torch.ones(1, dtype=torch.bool)
    actual = attend(query, key, value, everything, scaled=scaled, bias=bias)
    torch.testing.assert_close(actual, expected.transpose(1, 2).flatten(2), atol=1e-5, rtol=1e-5)


def test_masked_keys_do_not_count_however_large() -> None:
    query, key, value = torch.randn(3, 1, 2, 5, 4)
    lengths = torch.tensor([3])
    expected = attend(query, key, value, length_mask(lengths, 5))
    key[:, :, 3:], value[:, :, 3:] = 1e4, -1e4
    assert torch.equal(attend(query, key, value, length_mask(lengths, 5)), expected)


@settings(deadline=None, max_examples=20)
@given(ages=st.lists(st.integers(0, 5), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_a_step_reads_what_is_valid_and_its_own_position_alone(ages: list[int], seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    rows, heads, width = len(ages), 2, 8
    packed = torch.randn(rows, 1, 3 * width, generator=random)
    keys, values = torch.randn(2, rows, heads, 7, width // heads, generator=random)
    attention, lengths = AttendSelf(heads), torch.tensor(ages, dtype=torch.int32)
    expected, _, _ = attention.step(packed, keys.clone(), values.clone(), lengths)
    for row, age in enumerate(ages):
        keys[row, :, age + 1 :] += 10
        values[row, :, age + 1 :] -= 10
    actual, _, _ = attention.step(packed, keys, values, lengths)
    assert torch.equal(actual, expected)


@settings(deadline=None, max_examples=20)
@given(ages=st.lists(st.integers(0, 6), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_a_step_writes_one_position_of_each_row(ages: list[int], seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    rows, heads, width = len(ages), 2, 8
    packed = torch.randn(rows, 1, 3 * width, generator=random)
    keys, values = torch.randn(2, rows, heads, 7, width // heads, generator=random)
    before = keys.clone(), values.clone()
    lengths = torch.tensor(ages, dtype=torch.int32)
    _, present_keys, present_values = AttendSelf(heads).step(packed, keys, values, lengths)
    assert present_keys is keys
    assert present_values is values
    for row, age in enumerate(ages):
        for buffer, old, part in ((keys, before[0], 1), (values, before[1], 2)):
            new = packed[row, 0].chunk(3)[part].view(heads, -1)
            assert torch.equal(buffer[row, :, age], new)
            others = [position for position in range(7) if position != age]
            assert torch.equal(buffer[row, :, others], old[row, :, others])


def test_source_step_is_its_forward() -> None:
    attention, width = AttendSource(2), 8
    query, packed, lengths = torch.randn(3, 4, width), torch.randn(3, 5, 2 * width), torch.tensor([5, 1, 3])
    key, value = (split_heads(part, 2) for part in packed.chunk(2, dim=-1))
    buffers = [torch.cat([part, torch.full((3, 2, 4, 4), 1e4)], dim=2) for part in (key, value)]
    expected = attention(query, packed, lengths)
    torch.testing.assert_close(attention.step(query, buffers[0], buffers[1], lengths), expected)
