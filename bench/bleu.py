"""BLEU of translations, where sacrebleu is installed."""

from collections.abc import Sequence


def bleu(translations: Sequence[str], references: Sequence[str]) -> float | None:
    """Return BLEU; None where sacrebleu is not installed."""
    try:
        import sacrebleu
    except ModuleNotFoundError:
        return None
    return float(sacrebleu.corpus_bleu(translations, [references]).score)
