from dataclasses import replace

import pytest

from service.decode import Decode, DecodeStatus
from tests.invariants import Snapshot, violations


def decoding(tokens: int, source_tokens: int = 2) -> Decode:
    return Decode([2] * source_tokens, 10, target_ids=[5] * tokens, status=DecodeStatus.DECODING)


FIRST, SECOND = decoding(0), decoding(3, source_tokens=4)
SOUND = Snapshot(
    active=[FIRST, SECOND],
    slots=2,
    lengths=[0, 3],
    decoded=[FIRST.target_ids, SECOND.target_ids],
    memory_lengths=[2, 4],
    target_capacity=4,
)


def test_a_sound_batch_has_no_violation() -> None:
    assert violations(SOUND) == []


def test_an_empty_batch_has_no_violation() -> None:
    assert violations(replace(SOUND, active=[], lengths=[], decoded=[], memory_lengths=[])) == []


@pytest.mark.parametrize(
    ("changes", "violation"),
    [
        ({"slots": 1}, "2 segments in 1 slots"),
        (
            {"active": [FIRST, FIRST], "lengths": [0, 0], "decoded": [[], []], "memory_lengths": [2, 2]},
            "a segment in more slots than it takes",
        ),
        ({"active": [FIRST, Decode([2] * 4, 10, target_ids=[5] * 3)]}, "slot 1: its segment is WAITING"),
        ({"lengths": [1, 3]}, "slot 0: 1 tokens in the cache, 0 decoded, 0 given"),
        ({"target_capacity": 3}, "slot 1: no room for the next token"),
        ({"memory_lengths": [2, 3]}, "slot 1: memory of 3 tokens for 4"),
    ],
)
def test_each_violation_is_found_alone(changes: dict, violation: str) -> None:
    assert violations(replace(SOUND, **changes)) == [violation]


def test_all_violations_are_named() -> None:
    broken = replace(SOUND, lengths=[1, 3], memory_lengths=[2, 3])
    assert len(violations(broken)) == 2


def test_books_of_different_length_are_an_error_of_the_caller() -> None:
    with pytest.raises(ValueError, match="zip"):
        violations(replace(SOUND, lengths=[0]))
