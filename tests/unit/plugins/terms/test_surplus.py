"""What a translation may hold only a number of times."""

import pytest

from plugins.terms.surplus import Surplus
from service.constraints import Constraints

# A word begins with 1 to 5, and goes on with the others.
CONSTRAINTS = Constraints((((9,),),), frozenset({1, 2, 3, 4, 5}), at_most=(((1,), 1), ((2, 6), 2), ((3,), 0)))


@pytest.mark.parametrize(
    ("before", "token", "is_too_many"),
    [
        ((), 1, False),
        ((1, 4), 1, True),
        ((2, 6, 2), 6, False),
        ((2, 6, 4, 2, 6, 2), 6, True),
        ((2, 6, 4, 2, 6), 2, False),  # may become another word
        ((2, 7, 2, 7, 2), 6, False),
        ((), 3, True),
        ((4, 1), 4, False),
        ((4, 1), 6, True),  # the word would be another
        ((2, 6), 7, True),
        ((2,), 7, False),
    ],
)
def test_tokens_that_are_too_many(before: tuple[int, ...], token: int, is_too_many: bool) -> None:
    assert Surplus(CONSTRAINTS).is_made_by(token, before) is is_too_many


def test_anything_may_follow_where_nothing_is_limited() -> None:
    assert not Surplus(CONSTRAINTS._replace(at_most=())).is_made_by(1, (1, 1))
