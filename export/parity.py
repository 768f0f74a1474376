"""Does a bundle translate as the checkpoint does? Decoded by the very engine that will serve it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer
from model.data import Corpus
from model.decoding import greedy
from model.evaluate import score
from model.transformer import Transformer
from service.decode import Decode
from service.engine.offline import OfflineEngine

SLOTS = 32
MAX_BLEU_LOSS = 0.3
REFERENCE_BATCH = 64


@dataclass(frozen=True)
class Parity:
    """A bundle beside plain PyTorch greedy decoding of its checkpoint, over the same sentences.

    Attributes:
        precision: of the bundle.
        sentences: compared.
        equal: of them with the very same target ids.
        checkpoint_bleu: of plain PyTorch, fp32.
        bundle_bleu: of the bundle.
    """

    precision: str
    sentences: int
    equal: int
    checkpoint_bleu: float
    bundle_bleu: float

    @property
    def passed(self) -> bool:
        """Fp32 must be equal in every sentence, lower precision may lose MAX_BLEU_LOSS."""
        if self.precision == "fp32":
            return self.equal == self.sentences
        return self.bundle_bleu >= self.checkpoint_bleu - MAX_BLEU_LOSS

    def __str__(self) -> str:
        """Write one line for people."""
        return (
            f"{self.precision}: {self.equal} of {self.sentences} sentences equal to plain PyTorch; "
            f"BLEU {self.bundle_bleu:.2f}, checkpoint {self.checkpoint_bleu:.2f}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Give the figures for JSON."""
        return asdict(self)


def decode_with_checkpoint(model: Transformer, sources: Sequence[list[int]], max_target_tokens: int) -> list[list[int]]:
    """Decode each source greedily in plain PyTorch, under its own limit."""
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    targets: list[list[int]] = [[] for _ in sources]
    for start in range(0, len(order), REFERENCE_BATCH):
        rows = order[start : start + REFERENCE_BATCH]
        limit = target_limit(len(sources[rows[-1]]), max_target_tokens)
        for row, target in zip(
            rows, greedy(model, [sources[row] for row in rows], max_target_tokens=limit), strict=True
        ):
            targets[row] = target[: target_limit(len(sources[row]), max_target_tokens)]
    return targets


def decode_with_engine(bundle: Bundle, sources: Sequence[list[int]]) -> list[list[int]]:
    """Decode each source with the engine, on the CPU, in in-flight batches, under the same limit."""
    limit = bundle.manifest.max_target_tokens
    decodes = [Decode(ids, max_target_tokens=target_limit(len(ids), limit)) for ids in sources]
    OfflineEngine(bundle, slots=SLOTS).decode(decodes)
    return [decode.target_ids for decode in decodes]


@dataclass(frozen=True)
class Yardstick:
    """What a checkpoint itself makes of sentences.

    Attributes:
        sources: ids of each sentence.
        targets: ids of what plain PyTorch decodes of each, greedily and in fp32.
        references: a translation of each.
    """

    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    references: Sequence[str]

    @classmethod
    def of(cls, model: Transformer, tokenizer: Tokenizer, pairs: Corpus, max_target_tokens: int) -> "Yardstick":
        """Decode every source, which must be short enough for the model."""
        sources = [[*tokenizer.encode(text), model.config.eos_id] for text in pairs.sources]
        return cls(sources, decode_with_checkpoint(model, sources, max_target_tokens), pairs.targets)


def compare(yardstick: Yardstick, tokenizer: Tokenizer, bundle: Bundle) -> Parity:
    """Decode the sentences with a bundle, and compare."""
    expected, actual = yardstick.targets, decode_with_engine(bundle, yardstick.sources)
    return Parity(
        precision=bundle.manifest.precision,
        sentences=len(expected),
        equal=sum(a == b for a, b in zip(expected, actual, strict=True)),
        checkpoint_bleu=score([tokenizer.decode(ids) for ids in expected], yardstick.references).bleu,
        bundle_bleu=score([tokenizer.decode(ids) for ids in actual], yardstick.references).bleu,
    )
