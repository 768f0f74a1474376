from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.faults.books import Books, Figures

ENDS = st.lists(st.sampled_from(["right", "wrong", "INTERNAL", "CANCELLED", "lost"]))


def entered(ends: list[str], books: Books) -> Books:
    for end in ends:
        books.send()
        if end in ("right", "wrong"):
            books.answer(end == "right")
        elif end == "lost":
            books.lose()
        else:
            books.fail(end)
    return books


@given(ENDS, st.integers(0, 5))
def test_every_call_has_one_line_or_is_open(ends: list[str], without_end: int) -> None:
    books = entered(ends, Books())
    books.send(without_end)
    figures = books.figures()
    counts = Counter(ends)
    assert (figures.ok, figures.wrong, figures.lost) == (counts["right"], counts["wrong"], counts["lost"])
    assert figures.failed == Counter(end for end in ends if end.isupper())
    assert figures.open == without_end


@given(ENDS, ENDS)
def test_what_came_later_is_the_difference(earlier: list[str], later: list[str]) -> None:
    books = entered(earlier, Books())
    before = books.figures()
    entered(later, books)
    assert books.figures() - before == entered(later, Books()).figures()
    assert before + (books.figures() - before) == books.figures()
    assert before == entered(earlier, Books()).figures()  # a copy


def test_a_try_is_no_call() -> None:
    books = Books()
    books.retry("DRAINING")
    assert books.figures() == Figures(retried=Counter(DRAINING=1))
    assert books.figures().open == 0
