"""Tokens with which a translation would hold something more often than it is to."""

from service.constraints import Constraints, Form


class Surplus:
    """Tells which tokens are not to follow, see `Constraints.at_most`.

    What stands there counts, whatever goes on behind it, and no word is to go on there.
    """

    def __init__(self, constraints: Constraints) -> None:
        """Prepare the constraints of a segment."""
        self._at_most = constraints.at_most
        self._begins_word = constraints.begins_word

    def is_made_by(self, token: int, before: tuple[int, ...]) -> bool:
        """Tell whether a token makes one too many, or goes on with a word that is one.

        Args:
            token: which is not the end.
            before: the tokens before it.
        """
        inside_word = token not in self._begins_word
        ids = (*before, token)
        return any(
            (inside_word and _ends_with(before, form)) or (_ends_with(ids, form) and _count(form, ids) > most)
            for form, most in self._at_most
        )


def _ends_with(ids: tuple[int, ...], form: Form) -> bool:
    return ids[-len(form) :] == form


def _count(form: Form, ids: tuple[int, ...]) -> int:
    return sum(ids[place : place + len(form)] == form for place in range(len(ids) - len(form) + 1))
