"""Does a bundle translate as the checkpoint does? Decoded by the very engine that will serve it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from export.samples import Sample
from model.decoding import Found, greedy_with_scores
from model.scores import score
from model.transformer import Transformer
from service.decode import Decode
from service.engine.offline import OfflineEngine
from service.options import SCORING

SLOTS = 32
MAX_BLEU_LOSS = 0.3
# Of sentences without references; see docs/models.md for what was measured.
MIN_EQUAL_SHARE = 0.75
MIN_AGREEMENT = 88.0
MAX_LOG_PROBABILITY_LOSS = 0.1
REFERENCE_BATCH = 64


@dataclass(frozen=True)
class Parity:
    """A bundle beside plain PyTorch greedy decoding of its checkpoint, over the same sentences.

    Attributes:
        precision: of the bundle.
        sentences: compared.
        equal: of them with the very same target ids.
        agreement: BLEU of the bundle's translations against those of PyTorch, piece by piece, so in any language.
        checkpoint_bleu: of plain PyTorch, fp32, against references; None where there are none.
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
            f"{self.precision}: {self.equal} of {self.sentences} sentences equal to plain PyTorch; "
            f"BLEU of one against the other {self.agreement:.2f}"
        )
        if self.log_probability_loss is not None:
            loss = f"{self.log_probability_loss:.3f} (at most {MAX_LOG_PROBABILITY_LOSS:g})"
            return f"{line}; log-probability of a token of PyTorch's translations less by {loss}"
        if self.bundle_bleu is None:
            return line if self.precision == "fp32" else f"{line} (no references: at least {MIN_AGREEMENT:g})"
        return f"{line}; against references {self.bundle_bleu:.2f}, checkpoint {self.checkpoint_bleu:.2f}"

    def as_dict(self) -> dict[str, Any]:
        """Give the figures for JSON."""
        return asdict(self)


def decode_with_checkpoint(model: Transformer, samples: Sequence[Sample], max_target_tokens: int) -> list[list[int]]:
    """Decode each sample greedily in plain PyTorch, under its own limit."""
    return [found.ids for found in found_by_checkpoint(model, samples, max_target_tokens)]


def found_by_checkpoint(model: Transformer, samples: Sequence[Sample], max_target_tokens: int) -> list[Found]:
    """Decode as :func:`decode_with_checkpoint`, and say how probable the translations are."""
    # Rows of a batch begin with as many ids.
    order = sorted(range(len(samples)), key=lambda row: (len(samples[row].start_ids), len(samples[row].source)))
    results = [Found([], 0.0, ended=False)] * len(samples)
    for _, group in groupby(order, key=lambda row: len(samples[row].start_ids)):
        alike = list(group)
        for start in range(0, len(alike), REFERENCE_BATCH):
            rows = alike[start : start + REFERENCE_BATCH]
            decoded = greedy_with_scores(
                model,
                [samples[row].source for row in rows],
                max_target_tokens=target_limit(len(samples[rows[-1]].source), max_target_tokens),
                start_ids=[samples[row].start_ids for row in rows],
            )
            for row, found in zip(rows, decoded, strict=True):
                limit = target_limit(len(samples[row].source), max_target_tokens)
                results[row] = found if len(found.ids) < limit else Found(found.ids[:limit], 0.0, ended=False)
    return results


def decode_with_engine(bundle: Bundle, samples: Sequence[Sample]) -> list[list[int]]:
    """Decode each sample with the engine, on the CPU, in in-flight batches, under the same limit."""
    limit = bundle.manifest.max_target_tokens
    decodes = [
        Decode(one.source, max_target_tokens=target_limit(len(one.source), limit), start_ids=one.start_ids)
        for one in samples
    ]
    OfflineEngine(bundle, slots=SLOTS).decode(decodes)
    return [decode.target_ids for decode in decodes]


def log_probability_loss(bundle: Bundle, samples: Sequence[Sample], found: Sequence[Found]) -> float | None:
    """Say by how much a token of the checkpoint's translations is less probable to a bundle, in the mean.

    Args:
        bundle: made from the checkpoint.
        samples: their sources.
        found: from `found_by_checkpoint`; those that did not end are left out, and where none did, the answer is None.
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
    OfflineEngine(bundle, slots=SLOTS).decode(decodes)
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
        expected: from `decode_with_checkpoint`.
        tokenizer: of the bundle.
        bundle: made from that checkpoint.
        loss: from `log_probability_loss`, where nobody chose the samples.
    """
    actual = decode_with_engine(bundle, samples)
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
