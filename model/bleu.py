"""BLEU as sacreBLEU computes it, on words or on ids: an import compares by it and installs no sacreBLEU."""

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final

_ORDERS: Final = 4
# What mteval-v13a.pl sets apart, in its order.
_APART: Final = (
    (re.compile(r"([{-~\[-` -&(-+:-@/])"), r" \1 "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)
_ENTITIES: Final = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))


def words(text: str) -> list[str]:
    """Cut a line of text as mteval-v13a.pl does, which is the rule for BLEU of Western languages."""
    text = text.rstrip().replace("<skipped>", "")
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    text = f" {text} "
    for pattern, apart in _APART:
        text = pattern.sub(apart, text)
    return text.split()


def bleu(translations: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> float:
    """Compute BLEU of translations against one reference each, with exponential smoothing.

    Args:
        translations: words or ids.
        references: as many.

    Returns:
        0 to 100.
    """
    correct, total = [0] * _ORDERS, [0] * _ORDERS
    for translation, reference in zip(translations, references, strict=True):
        for order in range(_ORDERS):
            found, known = _counts(translation, order + 1), _counts(reference, order + 1)
            correct[order] += (found & known).total()
            total[order] += found.total()
    if not any(correct) or not all(total):
        return 0.0
    smoothed, logarithms = 1.0, 0.0
    for right, of in zip(correct, total, strict=True):
        if not right:
            smoothed *= 2
        logarithms += math.log(100 * right / of if right else 100 / (smoothed * of))
    length, wanted = sum(map(len, translations)), sum(map(len, references))
    return min(1.0, math.exp(1 - wanted / length)) * math.exp(logarithms / _ORDERS)


def _counts(tokens: Sequence[Hashable], order: int) -> Counter[tuple[Hashable, ...]]:
    """Count the n-grams of one order."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))
