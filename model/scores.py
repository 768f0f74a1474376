"""BLEU and chrF of translations."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF


@dataclass(frozen=True)
class Scores:
    """Corpus scores with the signatures that make them comparable (Post, 2018)."""

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    sentences: int


def score(translations: Sequence[str], references: Sequence[str]) -> Scores:
    """Compute BLEU (sacreBLEU) and chrF of translations against one reference each."""
    bleu, chrf = BLEU(), CHRF()
    return Scores(
        bleu=round(bleu.corpus_score(translations, [references]).score, 2),
        bleu_signature=str(bleu.get_signature()),
        chrf=round(chrf.corpus_score(translations, [references]).score, 2),
        chrf_signature=str(chrf.get_signature()),
        sentences=len(translations),
    )
