"""A text from its parts to its translation, decoded here in any order and at any pace."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InternalError
from service.decode import FinishReason
from service.segment import Segment
from service.text.document import Document, Part
from tests.unit.service.played_segments import begun, end, fail

EOS = 2
UNKNOWN = 3
WORDS = ("good", "morning", "tom", "schön", "你好")
KEPT = st.sampled_from(["", " ", "\n\n", "---"])


def document(tokenizer, parts: Sequence[Part], *, wants_log_probability: bool = False) -> Document:
    return Document(
        iter(parts),
        tokenizer,
        text_bytes=0,
        characters=0,
        unknown_id=UNKNOWN,
        wants_log_probability=wants_log_probability,
    )


def segment_of(tokenizer, word: str) -> Segment:
    return Segment([*tokenizer.encode(word), EOS], 99)


def decode(segment: Segment, reason: FinishReason = FinishReason.EOS) -> None:
    """Ends a segment with its source as the translation."""
    begun(segment).target_ids.extend(segment.source_ids[:-1])
    end(segment, reason)


@given(st.lists(st.tuples(KEPT, st.sampled_from(WORDS)), max_size=8), KEPT, st.randoms())
def test_segments_that_end_in_any_order_make_the_text_in_its_own(tokenizer, words, end: str, chance) -> None:
    parts = [Part(kept, segment_of(tokenizer, word)) for kept, word in words] + [Part(end)]
    text = document(tokenizer, parts)
    text.read_all()
    assert text.complete
    assert (text.weight, len(text.segments)) == (len(words), len(words))
    grown = text.grow()
    for segment in chance.sample(text.segments, len(words)):
        decode(segment)
        grown += text.grow()
    while more := text.grow():
        grown += more
    result = text.result()
    assert result.text == grown == "".join(kept + word for kept, word in words) + end
    assert result.segments == len(words)
    assert result.source_tokens == result.target_tokens == sum(len(tokenizer.encode(word)) for _, word in words)
    assert text.segments == []


def test_a_text_is_read_part_by_part(tokenizer) -> None:
    parts = [Part("", segment_of(tokenizer, word)) for word in WORDS]
    text = document(tokenizer, parts)
    assert text.read(2) == parts[:2]
    assert text.add(parts[:2], last=False) == [part.segment for part in parts[:2]]
    assert not text.complete
    assert text.read(99) == parts[2:]
    text.add(parts[2:], last=True)
    assert text.complete
    assert text.segments == [part.segment for part in parts]


def test_what_is_finished_behind_waits_for_what_is_before(tokenizer) -> None:
    first, second = (segment_of(tokenizer, word) for word in ("good", "tom"))
    text = document(tokenizer, [Part("", first), Part(" ", second)])
    text.read_all()
    decode(second)
    assert not text.settle()
    assert text.grow() == ""
    decode(first)
    assert text.settle()
    assert text.grow() == "good tom"


def test_a_bounded_weight_is_settled_at_a_time(tokenizer) -> None:
    text = document(tokenizer, [Part("", segment_of(tokenizer, "tom")) for _ in range(5)])
    text.read_all()
    for segment in text.segments:
        decode(segment)
    text.settle(2)
    assert len(text.segments) == 3


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        (["EOS", "EOS"], "EOS"),
        (["EOS", "REPETITION"], "REPETITION"),
        (["REPETITION", "LENGTH", "EOS"], "LENGTH"),
        ([], "EOS"),
    ],
)
def test_the_worst_end_of_a_segment_is_that_of_the_text(tokenizer, reasons: list[str], expected: str) -> None:
    text = document(tokenizer, [Part("", segment_of(tokenizer, "tom")) for _ in reasons])
    text.read_all()
    for segment, reason in zip(text.segments, reasons, strict=True):
        decode(segment, FinishReason[reason])
    assert text.result().finish_reason is FinishReason[expected]


def test_the_first_error_is_that_of_the_text(tokenizer) -> None:
    text = document(tokenizer, [Part("", segment_of(tokenizer, word)) for word in WORDS[:3]])
    text.read_all()
    first, second, third = text.segments
    decode(first)
    errors = [InternalError("second"), InternalError("third")]
    for segment, error in ((third, errors[1]), (second, errors[0])):
        fail(segment, error)
    with pytest.raises(InternalError, match="second"):
        text.result()


@pytest.mark.parametrize("wants", [False, True])
def test_a_split_and_unknown_pieces_are_told_and_a_mean_where_it_is_wanted(tokenizer, wants: bool) -> None:
    segment = Segment([5, UNKNOWN, UNKNOWN, EOS], 9)
    text = document(tokenizer, [Part("", segment, split=True)], wants_log_probability=wants)
    text.read_all()
    begun(segment).log_probability = -3.0
    decode(segment)
    result = text.result()
    assert (result.unknown_pieces, result.split) == (2, True)
    assert result.mean_log_probability == (-3.0 / segment.decoded_tokens if wants else None)
