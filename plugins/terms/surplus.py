"""Tokens with which a translation would contain an item more often than allowed."""

from service.constraints import Constraints, Form


class Surplus:
    """Tells which tokens must not follow, see `Constraints.at_most`.

    An item counts as soon as it is there, whatever follows, and must not be continued as a longer word.
    """

    def __init__(self, constraints: Constraints) -> None:
        """Prepare the constraints of a segment."""
        self._at_most = constraints.at_most
        self._begins_word = constraints.begins_word

    def is_made_by(self, token: int, before: tuple[int, ...]) -> bool:
        """Tell whether a token completes one item too many, or continues a word that is an item.

        Args:
            token: a token other than the end-of-sentence token.
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
