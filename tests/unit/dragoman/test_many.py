from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import InternalError
from dragoman.many import MESSAGE_TEXTS, Entry, Unanswered, take_message
from dragoman.v1 import translation_pb2 as pb


def answers(*numbers: int) -> pb.BatchTranslateTextResponse:
    return pb.BatchTranslateTextResponse(translations=[pb.BatchTranslation(content_index=n) for n in numbers])


@given(st.data())
def test_every_text_is_answered_once_however_often_calls_break(data: st.DataObject) -> None:
    """Calls answer some of their texts, in any order, and break, until one does not."""
    ready = deque(Entry(place, str(place)) for place in range(data.draw(st.integers(0, 300))))
    expected = list(range(len(ready)))
    unanswered, answered = Unanswered(), []
    for breaks in [*data.draw(st.lists(st.just(True), max_size=5)), False]:
        unanswered.begin()
        open_numbers: dict[int, str] = {}
        for _ in range(data.draw(st.integers(0, 3)) if breaks else 10_000):
            if not (unanswered.left or ready):
                break
            for text in unanswered.send(take_message(unanswered.left or ready)).contents:
                open_numbers[len(open_numbers)] = text
        numbers = data.draw(st.permutations(list(open_numbers)))
        if breaks:
            numbers = numbers[: data.draw(st.integers(0, len(numbers)))]
        answered += [place for place, _ in unanswered.receive(answers(*numbers))]
        texts = [str(place) for place in answered[len(answered) - len(numbers) :]]
        assert texts == [open_numbers[number] for number in numbers]
    unanswered.check_end()
    assert sorted(answered) == expected


def test_what_is_sent_again_comes_in_the_order_of_the_iterable() -> None:
    unanswered, ready = Unanswered(), deque(Entry(place, str(place)) for place in range(6))
    unanswered.begin()
    unanswered.send(take_message(ready))
    unanswered.receive(answers(1, 4))
    unanswered.begin()  # 0, 2, 3 and 5 are left; of them 0 is sent again, and this call breaks as well
    unanswered.send([unanswered.left.popleft()])
    unanswered.begin()
    assert [entry.place for entry in unanswered.left] == [0, 2, 3, 5]


@given(st.lists(st.integers(1, 400_000), min_size=1, max_size=200))
def test_a_message_is_bounded_unless_it_is_of_one_text(sizes: list[int]) -> None:
    ready = deque(Entry(place, "x" * size) for place, size in enumerate(sizes))
    taken = take_message(ready)
    assert [entry.place for entry in [*taken, *ready]] == list(range(len(sizes)))
    assert len(taken) == 1 or sum(len(entry.text) for entry in taken) <= 262_144
    assert len(taken) <= MESSAGE_TEXTS


@pytest.mark.parametrize("numbers", [(0, 0), (1,)])
def test_an_answer_that_nobody_waits_for_is_an_error(numbers: tuple[int, ...]) -> None:
    unanswered = Unanswered()
    unanswered.send([Entry(0, "tom")])
    with pytest.raises(InternalError, match="not open"):
        unanswered.receive(answers(*numbers))


def test_an_end_with_texts_unanswered_is_an_error() -> None:
    unanswered = Unanswered()
    unanswered.send([Entry(0, "tom"), Entry(1, "station")])
    unanswered.receive(answers(1))
    with pytest.raises(InternalError, match="1 texts unanswered"):
        unanswered.check_end()


def test_what_is_unanswered_is_bounded() -> None:
    for text in ("tom", "x" * 100_000):
        unanswered, sent = Unanswered(), 0
        while unanswered.has_room:
            sent += len(unanswered.send([Entry(sent, text)]).contents)
        assert sent <= 2_048
        assert sent * len(text) < 5_000_000
        unanswered.receive(answers(0))
        assert unanswered.has_room
