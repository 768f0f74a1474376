"""Which words translate which, learned from pairs of sentences."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_WORD: Final = re.compile(r"\w+")
_ITERATIONS: Final = 4
_LEAST: Final = 0.01  # less probable translations are forgotten

Lexicon = Mapping[str, Mapping[str, float]]


def words(text: str) -> list[str]:
    """List the words of a text."""
    return _WORD.findall(text)


def learn(pairs: Iterable[tuple[str, str]]) -> Lexicon:
    """Learn by IBM model 1 how probably each source word becomes each target word (Brown et al. 1993, J93-2003).

    Args:
        pairs: source and target sentences.

    Returns:
        By source word and target word, the probability of the target word, from 0.01 on.
    """
    sentences = [(list(dict.fromkeys(words(source))), words(target)) for source, target in pairs]
    # Alike to begin with: the first round counts in how many pairs two words meet.
    table: dict[str, dict[str, float]] = {}
    for _ in range(_ITERATIONS):
        table = _better(sentences, table)
    return {
        source: {target: share for target, share in shares.items() if share >= _LEAST}
        for source, shares in table.items()
    }


def _better(sentences: Sequence[tuple[list[str], list[str]]], table: Lexicon) -> dict[str, dict[str, float]]:
    """Take one step of expectation and maximization."""
    counts: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sources, targets in sentences:
        rows = [(counts[source], table.get(source)) for source in sources]
        for target in targets:
            weights = [1.0 if row is None else row.get(target, 0.0) for _, row in rows]
            total = sum(weights)
            for (count, _), weight in zip(rows, weights, strict=True):
                count[target] += weight / total
    found = {}
    for source, count in counts.items():
        total = sum(count.values())
        found[source] = {target: share / total for target, share in count.items() if share}
    return found
