"""Whether tokens hold terms, found by trying everything."""

from collections.abc import Container

from service.constraints import Term


def holds(
    ids: tuple[int, ...], wanted: tuple[Term, ...], begins_word: Container[int], taken: frozenset[int] = frozenset()
) -> bool:
    """Tell whether tokens hold all terms as whole words, none of the tokens for two of them, nor at a place taken."""
    if not wanted:
        return True
    for form in wanted[0]:
        for place in range(len(ids) - len(form) + 1):
            behind = place + len(form)
            own = frozenset(range(place, behind))
            is_there = ids[place:behind] == form and (behind == len(ids) or ids[behind] in begins_word)
            if is_there and not own & taken and holds(ids, wanted[1:], begins_word, own | taken):
                return True
    return False
