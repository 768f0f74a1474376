"""Sentences with terms that their translations have to hold, taken from references."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bench.terms.lexicon import Lexicon, words

_FEWEST_CHARACTERS = 3  # of a term, and of the source word that it translates
_LEAST_PROBABLE = 0.08  # translation of a word that is taken for one


class Task(NamedTuple):
    """A sentence to translate.

    Attributes:
        source: the sentence.
        terms: that its translation has to hold.
        reference: translation, that holds them.
        greedy: translation without regard to the terms; lacks at least one.
    """

    source: str
    terms: tuple[str, ...]
    reference: str
    greedy: str


def occurrences(term: str, text: str) -> int:
    """Count where a term stands in a text as whole words."""
    return len(re.findall(rf"(?<!\w){re.escape(term)}(?!\w)", text))


def tasks(
    pairs: Sequence[tuple[str, str]], greedy: Sequence[str], lexicon: Lexicon, terms: int, at_most: int
) -> list[Task]:
    """Take terms from references: words that the greedy translation lacks, and then others that it has.

    Args:
        pairs: sources and references.
        greedy: translation of each.
        lexicon: says which words of a reference translate which of the source.
        terms: of each sentence; those with fewer are left out, and those whose greedy translation lacks none.
        at_most: sentences.
    """
    found = []
    for (source, reference), translation in zip(pairs, greedy, strict=True):
        linked = _linked(source, reference, lexicon)
        lacking = [term for term in linked if not occurrences(term, translation)]
        wanted = [*lacking, *(term for term in linked if term not in lacking)][:terms]
        if lacking and len(wanted) == terms:
            found.append(Task(source, tuple(wanted), reference, translation))
    return found[:at_most]


def _linked(source: str, reference: str, lexicon: Lexicon) -> list[str]:
    """List words of a reference that translate one word of the source each; each stands there once."""
    sources, targets, used = words(source), words(reference), set()
    linked = []
    for target in targets:
        if len(target) < _FEWEST_CHARACTERS or targets.count(target) > 1:
            continue
        for word in sources:
            if word in used or len(word) < _FEWEST_CHARACTERS or sources.count(word) > 1:
                continue
            if lexicon.get(word, {}).get(target, 0.0) >= _LEAST_PROBABLE:
                linked.append(target)
                used.add(word)
                break
    return linked
