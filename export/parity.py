"""The comparison of a bundle with its checkpoint, decoded by the engine that will serve the bundle."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from sacrebleu.metrics.bleu import BLEU

from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from export.samples import Sample
from model.scores import score
from plugins.offline.engine import OfflineEngine
from service.decode import Decode, FinishReason
from service.options import SCORING, Decoding

SLOTS = 32
MAX_BLEU_LOSS = 0.3
# For sentences without references; see docs/models.md for the measurements.
MIN_EQUAL_SHARE = 0.75
MIN_AGREEMENT = 88.0
MAX_LOG_PROBABILITY_LOSS = 0.1
_SCORED: Final = Decoding(wants_log_probability=True)


class Found(NamedTuple):
    """The result of a model for one source.

    Attributes:
        ids: the translation, without start and end-of-sentence ids.
        log_probability: the sum over all decoded ids, including the end-of-sentence id.
        ended: whether the model ended the translation.
    """

    ids: list[int]
    log_probability: float
    ended: bool


@dataclass(frozen=True)
class Parity:
    """A bundle and its checkpoint in fp32, compared on the same sentences; for fp32, batches and single sentences.

    Attributes:
        precision: the precision of the bundle.
        sentences: the number of compared sentences.
        equal: the number of sentences with identical target ids.
        agreement: BLEU of the bundle's translations against the checkpoint's, on pieces, so in any language.
        checkpoint_bleu: BLEU of the checkpoint in fp32 against references; None without references.
        bundle_bleu: BLEU of the bundle against references; None without references.
        log_probability_loss: the mean loss of log-probability per token when the bundle scores the checkpoint's own
            translations, as a natural logarithm; None if the user chose the sentences.
    """

    precision: str
    sentences: int
    equal: int
    agreement: float
    checkpoint_bleu: float | None = None
    bundle_bleu: float | None = None
    log_probability_loss: float | None = None

    @property
    def passed(self) -> bool:
        """Whether fp32 is equal in every sentence; others may lose MAX_BLEU_LOSS or, without references, differ little.

        If the user did not choose the sentences, the model may not know many of their kind: its best tokens are then
        nearly equal, and rounding changes translations. Then the probability of the checkpoint's translations decides.
        """
        if self.precision == "fp32":
            return self.equal == self.sentences
        if self.bundle_bleu is None or self.checkpoint_bleu is None:
            if self.log_probability_loss is not None:
                return self.log_probability_loss <= MAX_LOG_PROBABILITY_LOSS
            return self.agreement >= MIN_AGREEMENT
        return self.bundle_bleu >= self.checkpoint_bleu - MAX_BLEU_LOSS

    @property
    def doubts(self) -> str:
        """Name the values below the usual ones, for a bundle that passed without references; "" if there are none."""
        enough = self.equal >= MIN_EQUAL_SHARE * self.sentences and self.agreement >= MIN_AGREEMENT
        if self.precision == "fp32" or self.bundle_bleu is not None or enough:
            return ""
        return (
            f"{self.equal} of {self.sentences} sentences are equal, and BLEU is {self.agreement:.2f}; "
            f"as a rule these are at least {MIN_EQUAL_SHARE:.0%} and {MIN_AGREEMENT:g}"
        )

    def __str__(self) -> str:
        """Describe the result in one line."""
        line = (
            f"{self.precision}: {self.equal} of {self.sentences} sentences equal "
            f"{'alone and in batches' if self.precision == 'fp32' else 'to fp32'}; "
            f"BLEU of one against the other {self.agreement:.2f}"
        )
        if self.log_probability_loss is not None:
            loss = f"{self.log_probability_loss:.3f} (at most {MAX_LOG_PROBABILITY_LOSS:g})"
            return f"{line}; log-probability of a token of fp32's translations less by {loss}"
        if self.bundle_bleu is None:
            return line if self.precision == "fp32" else f"{line} (no references: at least {MIN_AGREEMENT:g})"
        return f"{line}; against references {self.bundle_bleu:.2f}, checkpoint {self.checkpoint_bleu:.2f}"


def decode(bundle: Bundle, samples: Sequence[Sample], slots: int = SLOTS, *, packed: bool = True) -> list[Found]:
    """Decode each sample with the engine, on the CPU, in in-flight batches.

    Args:
        bundle: the bundle to decode with.
        samples: the sources.
        slots: the largest number of sentences in a batch.
        packed: as for `plugins.offline.engine.OfflineEngine`.
    """
    limit = bundle.manifest.max_target_tokens
    decodes = [
        Decode(
            one.source,
            max_target_tokens=target_limit(len(one.source), limit),
            decoding=_SCORED,
            start_ids=one.start_ids,
        )
        for one in samples
    ]
    _run(bundle, decodes, slots, packed=packed)
    return [
        Found(each.target_ids, each.log_probability, ended=each.finish_reason is FinishReason.EOS) for each in decodes
    ]


def _run(bundle: Bundle, decodes: Sequence[Decode], slots: int, *, packed: bool = True) -> None:
    engine = OfflineEngine(bundle, slots=slots, packed=packed)
    try:
        engine.decode(decodes)
    finally:
        engine.close()


def log_probability_loss(bundle: Bundle, samples: Sequence[Sample], found: Sequence[Found]) -> float | None:
    """Compute the mean loss of log-probability per token when a bundle scores the checkpoint's translations.

    Args:
        bundle: the bundle made from the checkpoint.
        samples: the sources of the translations.
        found: from `decode` in fp32; unfinished translations are left out. Without any other, the result is None.
    """
    whole = [(sample, one) for sample, one in zip(samples, found, strict=True) if one.ended and one.ids]
    decodes = [
        Decode(
            sample.source,
            max_target_tokens=len(one.ids) + 1,
            decoding=SCORING,
            start_ids=sample.start_ids,
            scored_ids=(*one.ids, bundle.manifest.eos_id),
        )
        for sample, one in whole
    ]
    if not decodes:
        return None
    _run(bundle, decodes, SLOTS)
    tokens = sum(len(decode.scored_ids) for decode in decodes)
    lost = sum(one.log_probability for _, one in whole) - sum(decode.log_probability for decode in decodes)
    return round(lost / tokens, 4)


def compare(
    samples: Sequence[Sample],
    expected: Sequence[list[int]],
    tokenizer: Tokenizer,
    bundle: Bundle,
    loss: float | None = None,
) -> Parity:
    """Decode samples with a bundle, and compare the results.

    Args:
        samples: either all have a reference, or none.
        expected: the target ids of the checkpoint in fp32.
        tokenizer: the tokenizer of the bundle.
        bundle: the bundle made from that checkpoint.
        loss: from `log_probability_loss`, if the user did not choose the samples.
    """
    actual = [found.ids for found in decode(bundle, samples)]
    references = [sample.reference for sample in samples if sample.reference is not None]
    bleu = [
        score([tokenizer.decode(ids) for ids in decoded], references).bleu if references else None
        for decoded in (expected, actual)
    ]
    return Parity(
        precision=bundle.manifest.precision,
        sentences=len(samples),
        equal=sum(a == b for a, b in zip(expected, actual, strict=True)),
        agreement=_agreement(expected, actual),
        checkpoint_bleu=bleu[0],
        bundle_bleu=bleu[1],
        log_probability_loss=loss,
    )


def _agreement(expected: Sequence[list[int]], actual: Sequence[list[int]]) -> float:
    pieces = [[" ".join(map(str, ids)) for ids in decoded] for decoded in (actual, expected)]
    return round(float(BLEU(tokenize="none", force=True).corpus_score(pieces[0], [pieces[1]]).score), 2)
