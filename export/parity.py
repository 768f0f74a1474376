"""Does a bundle translate as the checkpoint does? Decoded by the very engine that will serve it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from sacrebleu.metrics.bleu import BLEU

from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from export.samples import Sample
from model.decoding import greedy
from model.evaluate import score
from model.transformer import Transformer
from service.decode import Decode
from service.engine.offline import OfflineEngine

SLOTS = 32
MAX_BLEU_LOSS = 0.3
# Of sentences without references; see docs/models.md for what was measured.
MIN_EQUAL_SHARE = 0.75
MIN_AGREEMENT = 88.0
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
    """

    precision: str
    sentences: int
    equal: int
    agreement: float
    checkpoint_bleu: float | None = None
    bundle_bleu: float | None = None

    @property
    def passed(self) -> bool:
        """Fp32 must be equal in every sentence; others may lose MAX_BLEU_LOSS, or differ so much without references."""
        if self.precision == "fp32":
            return self.equal == self.sentences
        if self.bundle_bleu is None or self.checkpoint_bleu is None:
            return self.agreement >= MIN_AGREEMENT and self.equal >= MIN_EQUAL_SHARE * self.sentences
        return self.bundle_bleu >= self.checkpoint_bleu - MAX_BLEU_LOSS

    def __str__(self) -> str:
        """Write one line for people."""
        line = (
            f"{self.precision}: {self.equal} of {self.sentences} sentences equal to plain PyTorch; "
            f"BLEU of one against the other {self.agreement:.2f}"
        )
        if self.bundle_bleu is None:
            return f"{line} (no references: at least {MIN_EQUAL_SHARE:.0%} and {MIN_AGREEMENT:g})"
        return f"{line}; against references {self.bundle_bleu:.2f}, checkpoint {self.checkpoint_bleu:.2f}"

    def as_dict(self) -> dict[str, Any]:
        """Give the figures for JSON."""
        return asdict(self)


def decode_with_checkpoint(model: Transformer, samples: Sequence[Sample], max_target_tokens: int) -> list[list[int]]:
    """Decode each sample greedily in plain PyTorch, under its own limit."""
    # Rows of a batch begin with as many ids.
    order = sorted(range(len(samples)), key=lambda row: (len(samples[row].start_ids), len(samples[row].source)))
    targets: list[list[int]] = [[] for _ in samples]
    for _, group in groupby(order, key=lambda row: len(samples[row].start_ids)):
        alike = list(group)
        for start in range(0, len(alike), REFERENCE_BATCH):
            rows = alike[start : start + REFERENCE_BATCH]
            decoded = greedy(
                model,
                [samples[row].source for row in rows],
                max_target_tokens=target_limit(len(samples[rows[-1]].source), max_target_tokens),
                start_ids=[samples[row].start_ids for row in rows],
            )
            for row, target in zip(rows, decoded, strict=True):
                targets[row] = target[: target_limit(len(samples[row].source), max_target_tokens)]
    return targets


def decode_with_engine(bundle: Bundle, samples: Sequence[Sample]) -> list[list[int]]:
    """Decode each sample with the engine, on the CPU, in in-flight batches, under the same limit."""
    limit = bundle.manifest.max_target_tokens
    decodes = [
        Decode(one.source, max_target_tokens=target_limit(len(one.source), limit), start_ids=one.start_ids)
        for one in samples
    ]
    OfflineEngine(bundle, slots=SLOTS).decode(decodes)
    return [decode.target_ids for decode in decodes]


def compare(samples: Sequence[Sample], expected: Sequence[list[int]], tokenizer: Tokenizer, bundle: Bundle) -> Parity:
    """Decode samples with a bundle, and compare.

    Args:
        samples: all of them with a reference, or none.
        expected: from `decode_with_checkpoint`.
        tokenizer: of the bundle.
        bundle: made from that checkpoint.
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
    )


def _agreement(expected: Sequence[list[int]], actual: Sequence[list[int]]) -> float:
    pieces = [[" ".join(map(str, ids)) for ids in decoded] for decoded in (actual, expected)]
    return round(float(BLEU(tokenize="none", force=True).corpus_score(pieces[0], [pieces[1]]).score), 2)
