"""Sentences with terms that their translations have to hold, taken from references."""

import re
from collections.abc import Sequence
from random import Random
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
        words: of the source, one for each term, that it translates.
    """

    source: str
    terms: tuple[str, ...]
    reference: str
    greedy: str
    words: tuple[str, ...]


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
            of_source = tuple(linked[term] for term in wanted)
            found.append(Task(source, tuple(wanted), reference, translation, of_source))
    return found[:at_most]


def unfit_tasks(
    pairs: Sequence[tuple[str, str]], greedy: Sequence[str], lexicon: Lexicon, at_most: int, seed: int = 1
) -> list[Task]:
    """Take terms that have nothing to do with their sentences: nouns of other references, drawn at random.

    Each stands in its reference in place of a noun, and is wanted as the translation of the word that this noun
    translates. Nouns are words with a capital letter that do not begin a reference, as in German.

    Args:
        pairs: sources and references.
        greedy: translation of each.
        lexicon: says which words of a reference translate which of the source.
        at_most: sentences.
        seed: of the draws.
    """
    random = Random(seed)
    nouns = [noun for _, reference in pairs for noun in _nouns(reference)]
    found = []
    for (source, reference), translation in zip(pairs, greedy, strict=True):
        linked = _linked(source, reference, lexicon)
        # What is the same in both languages is a name.
        own = next((noun for noun in _nouns(reference) if noun in linked and linked[noun] != noun), None)
        if own is None:
            continue
        noun = random.choice(nouns)
        if noun not in reference and noun not in translation:
            replaced = re.sub(rf"(?<!\w){re.escape(own)}(?!\w)", noun, reference)
            found.append(Task(source, (noun,), replaced, translation, (linked[own],)))
    return found[:at_most]


def _nouns(reference: str) -> list[str]:
    return [word for word in words(reference)[1:] if word[0].isupper() and len(word) >= _FEWEST_CHARACTERS]


def _linked(source: str, reference: str, lexicon: Lexicon) -> dict[str, str]:
    """List words of a reference that translate one word of the source each, and that word; each stands there once."""
    sources, targets = words(source), words(reference)
    linked: dict[str, str] = {}
    for target in targets:
        if len(target) < _FEWEST_CHARACTERS or targets.count(target) > 1:
            continue
        for word in sources:
            if word in linked.values() or len(word) < _FEWEST_CHARACTERS or sources.count(word) > 1:
                continue
            if lexicon.get(word, {}).get(target, 0.0) >= _LEAST_PROBABLE:
                linked[target] = word
                break
    return linked
