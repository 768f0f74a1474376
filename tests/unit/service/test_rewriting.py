"""Places of a text before and after it was edited."""

from hypothesis import assume, given
from hypothesis import strategies as st

from service.rewriting import Edit, Rewriting

# Parts of a text: some stay, some are written anew.
PARTS = st.lists(st.tuples(st.text("abc ", min_size=1, max_size=4), st.none() | st.text("xyz", max_size=5)))


def rewritten(parts: list[tuple[str, str | None]]) -> tuple[Rewriting, list[tuple[int, int]], list[tuple[int, int]]]:
    """The rewriting, and where each part stands before and after it."""
    text, after = "", ""
    edits, olds, news = [], [], []
    for old, new in parts:
        if new is not None:
            edits.append(Edit(len(text), len(text) + len(old), new))
        olds.append((len(text), len(text) + len(old)))
        news.append((len(after), len(after) + len(old if new is None else new)))
        text, after = text + old, after + (old if new is None else new)
    rewriting = Rewriting(text, edits)
    assert (rewriting.original, rewriting.text) == (text, after)
    return rewriting, olds, news


@given(PARTS)
def test_parts_are_found_on_both_sides(parts: list[tuple[str, str | None]]) -> None:
    rewriting, olds, news = rewritten(parts)
    for old, new in zip(olds, news, strict=True):
        assert rewriting.after(old) == new
        if new[0] < new[1]:  # what was taken out is nowhere
            assert rewriting.before(new) == old
    for first in range(len(parts)):
        for last in range(first, len(parts)):
            assert rewriting.after((olds[first][0], olds[last][1])) == (news[first][0], news[last][1])


@given(PARTS.filter(bool), st.data())
def test_a_place_inside_of_what_was_written_anew_is_all_of_it(parts: list[tuple[str, str | None]], data) -> None:
    rewriting, olds, news = rewritten(parts)
    place = data.draw(st.integers(0, len(parts) - 1))
    (start, stop), new = news[place], parts[place][1]
    assume(start < stop)
    inside = data.draw(st.integers(start, stop - 1))
    if new is not None:
        assert rewriting.before((inside, inside + 1)) == olds[place]
    else:
        assert rewriting.before((inside, inside + 1)) == (
            inside - start + olds[place][0],
            inside - start + olds[place][0] + 1,
        )
