"""Progress with terms, on small languages where every way to hold them can be tried."""

from hypothesis import given
from hypothesis import strategies as st

from plugins.terms.term_progress import Progress, Terms
from service.constraints import Constraints, Term
from tests import terms as terms_of

TOKENS = 9  # the first of them is the end
BEGINS_WORD = frozenset({1, 2, 3, 4, 5})  # a word goes on with the others
forms = st.builds(
    lambda first, rest: (first, *rest), st.sampled_from([1, 2, 3]), st.lists(st.integers(1, TOKENS - 1), max_size=2)
)
terms = st.lists(st.lists(forms, min_size=1, max_size=2, unique=True).map(tuple), min_size=1, max_size=3).map(tuple)


def holds(ids: tuple[int, ...], wanted: tuple[Term, ...]) -> bool:
    return terms_of.holds(ids, wanted, BEGINS_WORD)


def progress_of(ids: tuple[int, ...], *wanted: Term) -> Progress:
    progress = Terms(Constraints(wanted, BEGINS_WORD)).start
    for token in ids:
        progress = progress.after(token)
    return progress


@given(wanted=terms, ids=st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 6, 7]), max_size=12).map(tuple))
def test_all_terms_are_met_where_any_way_to_read_the_tokens_meets_them(wanted, ids) -> None:
    assert progress_of(ids, *wanted).is_complete is holds(ids, wanted)


@given(wanted=terms, ids=st.lists(st.integers(1, TOKENS - 1), max_size=6).map(tuple), data=st.data())
def test_tokens_that_are_wanted_lead_to_the_end(wanted, ids, data) -> None:
    """Each brings it nearer, so that there are no more of them than the terms have."""
    constraints = Constraints(wanted, BEGINS_WORD)
    progress = progress_of(ids, *wanted)
    for _ in range(constraints.tokens):
        if progress.is_complete:
            break
        further = [token for token in progress.wanted if progress.after(token).met > progress.met]
        assert further
        progress = progress.after(data.draw(st.sampled_from(further)))
    assert progress.is_complete


def test_a_term_is_whole_words() -> None:
    assert progress_of((1, 6), ((1, 6),)).is_complete
    assert progress_of((1, 6, 4), ((1, 6),)).is_complete
    assert not progress_of((1, 6, 7), ((1, 6),)).is_complete


def test_any_form_will_do_and_one_may_be_the_begin_of_another() -> None:
    term = ((1,), (1, 2, 6), (3, 3))
    for ids in ((4, 1), (1, 4), (1, 2, 6), (1, 2, 4), (1, 2), (3, 3, 4)):
        assert progress_of(ids, term).is_complete, ids
    for ids in ((), (1, 6), (3,), (3, 4, 3)):
        assert not progress_of(ids, term).is_complete, ids


def test_a_term_that_is_listed_twice_is_there_twice() -> None:
    term = ((1, 6),)
    assert not progress_of((1, 6, 4), term, term).is_complete
    assert progress_of((1, 6, 1, 6), term, term).is_complete


def test_what_is_begun_and_goes_on_otherwise_may_be_begun_again() -> None:
    progress = progress_of((1, 7), ((1, 6),))
    assert (progress.met, progress.wanted) == (0, [1])
    assert progress_of((1,), ((1, 6),)).wanted == [1, 6]


def test_behind_a_term_another_may_begin_though_its_tokens_could_stand_for_both() -> None:
    """1, 2, 2 hold the first term, or the second alone: read as the first, they need another 2."""
    progress = progress_of((1, 2, 2), ((1, 2, 2),), ((2,),))
    assert (progress.met, progress.wanted) == (3, [1, 2])
    assert progress.after(2).is_complete


def test_hypotheses_that_are_equally_far_share_their_progress() -> None:
    start = Terms(Constraints((((1, 6), (2,)),), BEGINS_WORD)).start
    assert start.after(4) is start.after(7) is start
    assert start.after(2).after(4) is start.after(1).after(6).after(5)


def test_many_terms_that_can_stand_for_each_other_take_no_time() -> None:
    wanted = tuple(((1,), (2, token)) for token in range(10, 40))
    progress = progress_of((1, 4) * 29, *wanted)
    assert not progress.is_complete
    assert progress.after(1).is_complete
