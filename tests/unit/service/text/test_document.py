"""A text from its parts to its translation, decoded here in any order and at any pace."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InternalError
from plugins.alignment.alignment import Alignment
from service.decode import Decode, FinishReason, Hypothesis
from service.segment import Segment
from service.text.document import Document
from service.text.part import Part
from service.text.token_attention import SegmentText
from tests.unit.service.played_segments import end, fail

EOS = 2
UNKNOWN = 3
WORDS = ("good", "morning", "tom", "schön", "你好")
KEPT = st.sampled_from(["", " ", "\n\n", "---"])


def document(
    tokenizer,
    parts: Sequence[Part],
    *,
    wants_log_probability: bool = False,
    alternatives: int = 0,
    alignments: bool = False,
) -> Document:
    return Document(
        iter(parts),
        tokenizer,
        text_bytes=0,
        characters=0,
        unknown_id=UNKNOWN,
        wants_log_probability=wants_log_probability,
        alternatives=alternatives,
        alignments=alignments,
    )


def segment_of(tokenizer, word: str) -> Segment:
    ids = tokenizer.encode(word)
    return Segment(Decode([*ids, EOS], 99), source_tokens=len(ids))


def decode(segment: Segment, reason: FinishReason = FinishReason.EOS) -> None:
    """Ends a segment with its source as the translation."""
    segment.decode.target_ids.extend(segment.decode.source_ids[:-1])
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
    segment = Segment(Decode([5, UNKNOWN, UNKNOWN, EOS], 9))
    text = document(tokenizer, [Part("", segment, split=True)], wants_log_probability=wants)
    text.read_all()
    segment.decode.log_probability = -3.0
    decode(segment)
    result = text.result()
    assert (result.unknown_pieces, result.split) == (2, True)
    assert result.mean_log_probability == (-3.0 / segment.decode.decoded_tokens if wants else None)


class Bold:
    marks = ("<b>", "</b>")
    contents = ()

    def restore(self, translation: str, alignment: Alignment | None, kept: Sequence[tuple[int, int]] = ()) -> str:
        return f"<b>{translation}</b>"


def look(segment: Segment, order: Sequence[int]) -> None:
    """Ends a segment with its source as the translation; token n looked at token `order[n]` of the source."""
    segment.decode.attention.extend(np.eye(len(segment.decode.source_ids), dtype=np.float32)[list(order)])
    decode(segment)


def test_alignments_are_those_of_all_segments_in_the_places_of_the_text(tokenizer) -> None:
    words = ["tom", "schön", "你好"]
    sources, begun_at = [], 0
    for word in words:
        begun_at += 2
        sources.append(SegmentText(word, begun_at, 0))
        begun_at += len(word)
    parts = [
        Part("- ", segment_of(tokenizer, word), None, source=source)
        for word, source in zip(words, sources, strict=True)
    ]
    text = document(tokenizer, parts, alignments=True)
    text.read_all()
    assert text.weight == 3 * 33
    for segment in text.segments:
        look(segment, range(segment.source_tokens))
    result = text.result()
    source = "- tom- schön- 你好"
    assert result.text == source
    assert [source[slice(*link.source)] for link in result.alignments] == words
    assert [(link.source, link.weight) for link in result.alignments] == [
        (link.target, 1.0) for link in result.alignments
    ]


def test_a_language_in_front_of_a_source_is_no_word_of_it(tokenizer) -> None:
    ids = tokenizer.encode("tom schön")
    segment = Segment(Decode([7, 7, *ids, EOS], 99))
    text = document(tokenizer, [Part("", segment, source=SegmentText("tom schön", 0, 2))], alignments=True)
    text.read_all()
    segment.decode.target_ids.extend(ids)
    segment.decode.attention.extend(np.eye(len(ids) + 3, dtype=np.float32)[2:-1])
    end(segment, FinishReason.EOS)
    assert [(link.source, link.target) for link in text.result().alignments] == [((0, 3), (0, 3)), ((4, 9), (4, 9))]


def test_what_was_not_looked_at_has_no_alignment(tokenizer) -> None:
    parts = [Part("", segment_of(tokenizer, word), source=SegmentText(word, 0, 0)) for word in ("tom", "good")]
    text = document(tokenizer, parts, alignments=True)
    text.read_all()
    first, second = text.segments
    decode(second)
    end(first, FinishReason.EOS)  # without a token
    assert text.result().alignments == []


class Seen(Bold):
    """Notes what it is given to restore."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def restore(self, translation: str, alignment: Alignment | None, kept: Sequence[tuple[int, int]] = ()) -> str:
        assert alignment is not None
        span = alignment.target_of(0, 3)
        assert span is not None
        self.found.append((translation, translation[slice(*span)]))
        return translation


def test_what_was_taken_out_is_put_back_by_the_words_of_each_alternative(tokenizer) -> None:
    source = "tom good"
    seen = Seen()
    segment = segment_of(tokenizer, source)
    text = document(tokenizer, [Part("", segment, seen, source=SegmentText(source, 0, 0))], alternatives=2)
    text.read_all()
    rows = np.eye(len(segment.decode.source_ids), dtype=np.float32)
    own = tokenizer.encode("good tom")
    split = len(tokenizer.encode("good"))
    crossed = [*rows[-1 - split : -1], *rows[: len(own) - split]]
    hypotheses = [
        Hypothesis(ids, -1.0, -1.0, FinishReason.EOS, 9, attention)
        for ids, attention in ((own, crossed), (tokenizer.encode(source), list(rows[:-1])))
    ]
    segment.decode.target_ids.extend(own)
    segment.decode.attention.extend(crossed)
    segment.decode.hypotheses = hypotheses
    end(segment, FinishReason.EOS)
    assert text.result().alignments == []
    assert seen.found == [("good tom", "tom"), ("tom good", "tom")]


def choose(tokenizer, segment: Segment, words: dict[str, float]) -> None:
    """Ends a segment with a hypothesis for each word, of the score beside it."""
    found = [
        Hypothesis(
            ids,
            score * 2,
            score,
            FinishReason.LENGTH if word == "tom" else FinishReason.EOS,
            len(ids) + (word != "tom"),
        )
        for word, score in words.items()
        for ids in [tokenizer.encode(word)]
    ]
    decode = segment.decode
    decode.target_ids.extend(found[0].target_ids)
    decode.log_probability, decode.hypotheses = found[0].log_probability, found
    end(segment, found[0].finish_reason)


def test_alternatives_have_the_separators_and_the_tags_of_the_text(tokenizer) -> None:
    first, second = (segment_of(tokenizer, word) for word in ("good", "tom"))
    parts = [Part("- ", first), Part("\n", second, Bold()), Part(" -")]
    text = document(tokenizer, parts, alternatives=3)
    text.read_all()
    assert text.weight == 3 * (1 + 3)
    choose(tokenizer, second, {"schön": -1.0, "tom": -4.0})
    choose(tokenizer, first, {"good": -1.0, "morning": -2.0})
    result = text.result()
    assert [(each.text, each.score, each.finish_reason) for each in result.alternatives] == [
        ("- good\n<b>schön</b> -", -2.0, FinishReason.EOS),
        ("- morning\n<b>schön</b> -", -3.0, FinishReason.EOS),
        ("- good\n<b>tom</b> -", -5.0, FinishReason.LENGTH),
    ]
    best = result.alternatives[0]
    assert (best.text, best.finish_reason) == (result.text, result.finish_reason)
    assert best.mean_log_probability == pytest.approx(-4.0 / (result.target_tokens + 2))
    assert result.mean_log_probability is None


def test_alternatives_are_the_same_however_a_text_grows(tokenizer) -> None:
    def made(*, streamed: bool) -> Document:
        text = document(tokenizer, [Part(" ", segment_of(tokenizer, "good")) for _ in range(3)], alternatives=4)
        text.read_all()
        for segment in list(text.segments):
            choose(tokenizer, segment, {"good": -1.0, "tom": -1.5, "schön": -3.0})
            while streamed and text.grow():
                pass
        return text

    assert made(streamed=True).result().alternatives == made(streamed=False).result().alternatives


def test_no_more_hypotheses_are_used_than_are_asked_for_and_fewer_where_there_are_fewer(tokenizer) -> None:
    for wanted, found in ((2, 2), (9, 3)):
        text = document(tokenizer, [Part("", segment_of(tokenizer, "good"))], alternatives=wanted)
        text.read_all()
        choose(tokenizer, text.segments[0], {"good": -1.0, "tom": -1.5, "schön": -3.0})
        assert [each.score for each in text.result().alternatives] == [-1.0, -1.5, -3.0][:found]


def test_a_text_without_words_has_itself_alone(tokenizer) -> None:
    text = document(tokenizer, [Part(" \n")], alternatives=3)
    text.read_all()
    assert text.result().alternatives == [(" \n", 0.0, FinishReason.EOS, 0.0)]


def test_a_text_of_which_a_segment_failed_has_its_error_and_no_alternatives(tokenizer) -> None:
    first, second = (segment_of(tokenizer, word) for word in ("good", "tom"))
    text = document(tokenizer, [Part("", first), Part(" ", second)], alternatives=2)
    text.read_all()
    fail(first, InternalError("first"))
    choose(tokenizer, second, {"tom": -1.0})
    with pytest.raises(InternalError, match="first"):
        text.result()
