"""Names that a model copies unchanged into its translations, measured by the engine that will serve it.

A server can put such a name in place of text that must stay unchanged, and put the text back into the translation: so
the model reads a name that it knows. Some models copy none, for example because they write another script.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from dragoman.bundle import Bundle
from export.parity import SLOTS
from model.stand_ins import MOST, STAND_INS
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from service.text.translator import Translator

_MOST_TRIED: Final = 32
_MOST_SENTENCES: Final = 40
_FEWEST_SENTENCES: Final = 10
_LEAST_SHARE: Final = 0.9
_NAME: Final = re.compile(r"(?<!\w)[^\W\d_a-z][^\W\d_]{2,}(?!\w)")


def measure_stand_ins(bundle: Bundle, texts: Sequence[str]) -> tuple[str, ...]:
    """Choose names that, put into sentences, appear exactly once in the translation of nearly every sentence.

    Names of few pieces come first: the model cannot write half of a name that is one piece.

    Args:
        bundle: a bundle of a model for one pair; other models get no names, since languages differ.
        texts: sentences.

    Returns:
        The names, the best first: fewer pieces first, then more often copied.
    """
    manifest = bundle.manifest
    if len(manifest.source_languages) * len(manifest.target_languages) > 1:
        return ()
    tokenizer = bundle.tokenizer()
    engine, translator = OfflineEngine(bundle, slots=SLOTS), Translator(manifest, tokenizer)

    def translate(texts: Sequence[str]) -> list[str]:
        return [result.text for result in translate_offline(translator, engine, texts)]

    try:
        return _chosen(texts, translate, lambda name: len(tokenizer.encode_target(name)))
    finally:
        engine.close()


def _chosen(
    texts: Sequence[str], translate: Callable[[Sequence[str]], list[str]], pieces: Callable[[str], int]
) -> tuple[str, ...]:
    carriers, names = _carriers(texts, translate(texts))
    if len(carriers) < _FEWEST_SENTENCES:
        return ()
    tried = list(dict.fromkeys([*STAND_INS, *names]))[:_MOST_TRIED]
    translations = iter(translate([before + name + behind for name in tried for before, behind in carriers]))
    copied = Counter({name: sum(_count(name, next(translations)) == 1 for _ in carriers) for name in tried})
    sure = [name for name in tried if copied[name] >= _LEAST_SHARE * len(carriers)]
    return tuple(sorted(sure, key=lambda name: (pieces(name), -copied[name]))[:MOST])


def _carriers(texts: Sequence[str], translations: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Find the text around copied names, and these names, the most frequent first."""
    carriers: list[tuple[str, str]] = []
    names: Counter[str] = Counter()
    for text, translation in zip(texts, translations, strict=True):
        for name in _NAME.finditer(text):
            if _count(name[0], text) == _count(name[0], translation) == 1:
                names[name[0]] += 1
                carriers.append((text[: name.start()], text[name.end() :]))
                break
    return carriers[:_MOST_SENTENCES], [name for name, _ in names.most_common()]


def _count(name: str, text: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text))
