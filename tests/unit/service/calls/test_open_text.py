"""A text that is read and decoded, and the removal of what is unfinished."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InternalError
from service.calls.open_text import OpenText, pop_unfinished
from service.segment import Segment


def text_of(segments: int) -> OpenText:
    text = OpenText(InternalError("not read"), 1)
    text.unfinished = {Segment([number + 3, 2], 4): None for number in range(segments)}
    return text


def test_a_text_is_finished_when_it_was_read_and_no_segment_is_left() -> None:
    text = text_of(1)
    assert not text.finished
    text.read = True
    assert not text.finished
    text.unfinished.clear()
    assert text.finished
    text.read = False
    assert not text.finished


@given(st.lists(st.integers(0, 5), max_size=5), st.integers(0, 20))
def test_the_first_are_removed_in_the_order_of_the_texts(counts: list[int], count: int) -> None:
    texts = [text_of(segments) for segments in counts]
    every = [segment for text in texts for segment in text.unfinished]
    assert pop_unfinished(texts, count) == every[:count]
    assert [segment for text in texts for segment in text.unfinished] == every[count:]
