"""Does a bundle translate as the checkpoint does? Decoded by the very engine that will serve it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

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
# Of sentences without references; see docs/models.md for what was measured.
MIN_EQUAL_SHARE = 0.75
MIN_AGREEMENT = 88.0
MAX_LOG_PROBABILITY_LOSS = 0.1
_SCORED: Final = Decoding(wants_log_probability=True)


class Found(NamedTuple):
    """What a model makes of a source.

    Attributes:
        ids: without start and end-of-sentence ids.
        log_probability: of all that was decoded, the end-of-sentence id among them.
        ended: whether the model ended it.
    """

    ids: list[int]
    log_probability: float
    ended: bool


@dataclass(frozen=True)
class Parity:
    """A bundle beside its checkpoint in fp32, over the same sentences; of fp32, in batches beside one at a time.

    Attributes:
        precision: of the bundle.
        sentences: compared.
        equal: of them with the very same target ids.
        agreement: BLEU of the bundle's translations against the checkpoint's, piece by piece, so in any language.
        checkpoint_bleu: in fp32, against references; None where there are none.
        bundle_bleu: of the bundle, likewise.
        log_probability_loss: by how much a token of the checkpoint's own translations is less probable to the bundle,
            as a natural logarithm, in the mean; None where the user chose the sentences.
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
        """Fp32 must be equal in every sentence; others may lose MAX_BLEU_LOSS, or differ so much without references.

        Where nobody chose the sentences, many may be of a kind that the model does not know: there its best tokens are
        nearly equal, rounding decides, and translations part. What counts is how probable its own ones stay.
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
        """Say what is less than it is as a rule, of a bundle that passed without references; "" where nothing is."""
        enough = self.equal >= MIN_EQUAL_SHARE * self.sentences and self.agreement >= MIN_AGREEMENT
        if self.precision == "fp32" or self.bundle_bleu is not None or enough:
            return ""
        return (
            f"{self.equal} of {self.sentences} sentences are equal, and BLEU is {self.agreement:.2f}; "
            f"as a rule these are at least {MIN_EQUAL_SHARE:.0%} and {MIN_AGREEMENT:g}"
        )

    def __str__(self) -> str:
        """Write one line for people."""
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

    def as_dict(self) -> dict[str, Any]:
        """Give the figures for JSON."""
        return asdict(self)


def decode(bundle: Bundle, samples: Sequence[Sample], slots: int = SLOTS, *, packed: bool = True) -> list[Found]:
    """Decode each sample with the engine, on the CPU, in in-flight batches.

    Args:
        bundle: to decode with.
        samples: sources.
        slots: sentences that share a batch at most.
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
    """Say by how much a token of the checkpoint's translations is less probable to a bundle, in the mean.

    Args:
        bundle: made from the checkpoint.
        samples: their sources.
        found: from `decode` in fp32; those that did not end are left out, and where none did, the answer is None.
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
    """Decode samples with a bundle, and compare.

    Args:
        samples: all of them with a reference, or none.
        expected: of the checkpoint in fp32.
        tokenizer: of the bundle.
        bundle: made from that checkpoint.
        loss: from `log_probability_loss`, where nobody chose the samples.
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
