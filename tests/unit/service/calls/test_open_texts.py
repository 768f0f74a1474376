from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import TextFailedError
from service.calls.open_texts import OpenTexts
from service.segment import Segment
from tests.unit.service.calls.played_texts import CharacterTranslator
from tests.unit.service.played_segments import end

ERROR = TextFailedError("cannot be read")


def segments(count: int) -> list[Segment]:
    return [Segment([number, 2], 8) for number in range(3, 3 + count)]


def document(text: str = "ab"):
    return CharacterTranslator().open(text)


def test_a_text_is_finished_when_it_is_read_and_all_its_segments_have_ended() -> None:
    texts, (first, second) = OpenTexts(), segments(2)
    texts.expect({0: document()})
    texts.take_up(0, [first])
    assert texts.note(0, end(first))
    assert not texts.check(0)  # there may be more
    texts.take_up(0, [second])
    assert not texts.close(0)
    assert texts.note(0, end(second))
    assert texts.check(0)
    assert (texts.finished, texts.unread) == ({0}, 0)


def test_a_text_without_segments_is_finished_when_it_is_read() -> None:
    texts = OpenTexts()
    texts.expect({0: document(""), 1: ERROR})
    assert texts.close(0)
    assert texts.close(1)
    assert texts.moved == {0, 1}


def test_the_end_of_a_segment_is_news_once() -> None:
    texts, [segment] = OpenTexts(), segments(1)
    texts.expect({0: document()})
    texts.take_up(0, [segment])
    assert not texts.note(0, segment)  # a token
    assert texts.note(0, end(segment))
    assert not texts.note(0, segment)


def test_an_error_takes_the_place_of_a_text_and_leaves_no_segment() -> None:
    texts, given = OpenTexts(), segments(3)
    texts.expect({0: document()})
    texts.take_up(0, given)
    texts.note(0, end(given[0]))
    assert texts.fail(0, ERROR) == given[1:]
    assert texts.content(0) is ERROR
    assert texts.close(0)


def test_sizes_count_until_a_text_is_forgotten() -> None:
    texts = OpenTexts()
    texts.expect({4: document(), 5: document()}, [10, 20])
    assert (len(texts), texts.held_bytes) == (2, 30)
    texts.close(5)
    assert (texts.ready(in_order=False), texts.ready(in_order=True)) == ([5], [])
    texts.close(4)
    assert texts.ready(in_order=True) == [4, 5]
    texts.forget([4])
    assert (len(texts), texts.held_bytes, texts.finished) == (1, 20, {5})


@given(st.lists(st.integers(0, 5), max_size=5), st.integers(0, 20))
def test_what_is_unfinished_comes_in_the_order_of_the_texts_and_once(counts: list[int], count: int) -> None:
    texts, given_ = OpenTexts(), [segments(number) for number in counts]
    texts.expect({number: document() for number in range(len(counts))})
    for number, each in enumerate(given_):
        texts.take_up(number, each)
    every = [segment for each in given_ for segment in each]
    assert texts.pop_unfinished(count) == every[:count]
    assert texts.pop_unfinished(100) == every[count:]
    assert texts.pop_unfinished(100) == []


def test_texts_that_were_read_are_taken_at_once_and_those_without_segments_are_finished() -> None:
    texts, translator = OpenTexts(), CharacterTranslator()
    first, second = texts.take(
        {0: translator.prepare("a"), 1: ERROR, 2: translator.prepare(""), 3: translator.prepare("b")}
    )
    assert (texts.finished, texts.moved, texts.unread) == ({1, 2}, {1, 2}, 0)
    assert texts.note(0, end(first))
    assert texts.check(0)
    assert texts.note(3, end(second))
    assert texts.check(3)
    assert texts.ready(in_order=True) == [0, 1, 2, 3]
