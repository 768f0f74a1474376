"""Makes the synthetic model: random weights, the real exporter, the real onnxruntime, in seconds.

Its output is noise, yet depends on every source token and ends at different steps: what the engine needs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.bundle import SHORTLIST, Bundle, Precision
from dragoman.language_marks import Languages
from dragoman.shortlist import Shortlist
from export.write import Target, export_bundle
from model.checkpoint import load_checkpoint, save_checkpoint
from model.config import TransformerConfig
from model.corpus import Corpus, read_corpus
from model.data import pad
from model.decoding import greedy
from model.layout import PARITY
from model.subwords import train_tokenizer
from model.transformer import Transformer
from tests.made_once import made_once
from tests.marian_bin import shortlist
from tests.synthetic import CORPUS, MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS, VOCABULARY, Synthetic, texts

# Both chosen by trial: cross-attention counts as much as the target itself, and one sentence in six reaches the limit.
CROSS_ATTENTION_GAIN = 3.0
EOS_BIAS = 2.5
# Logits of two fp32 implementations differ by some 1e-6; where the best two are closer than this, either may win.
TIE = 1e-4


# A student as those of Firefox: a recurrence in the decoder, each sublayer normalized behind its sum.
RECURRENT = {"decoder_cell": "ssru", "norm": "post", "positions": "sinusoidal_halves"}


class Expected(NamedTuple):
    """What plain PyTorch decodes for one sentence alone.

    Attributes:
        target_ids: up to the model's limit.
        certain: tokens, the end-of-sentence token counted, before the first whose choice is a tie.
    """

    target_ids: list[int]
    certain: int

    def agrees(self, target_ids: Sequence[int], limit: int) -> bool:
        """Whether an engine may have decoded this under a limit."""
        expected = self.target_ids[:limit]
        if self.certain >= min(len(self.target_ids) + 1, limit):
            return list(target_ids) == expected
        return list(target_ids)[: self.certain] == expected[: self.certain]


def make_checkpoint(*, listed: bool = False, **architecture: Any) -> Path:
    """Give a checkpoint with random weights, always the same.

    Args:
        listed: with a shortlist, at random too.
        architecture: fields of `TransformerConfig` in place of the tiny model's own.
    """

    def make(folder: Path) -> None:
        tokenizer = folder / "tokenizer"
        train_tokenizer(read_corpus(CORPUS), tokenizer, vocabulary_size=VOCABULARY, joint=True)
        # Noise has no BLEU; a reference that shares nothing with it keeps that so in every precision.
        pairs = Corpus(texts()[:3], ["你好"] * 3, [])
        save_checkpoint(folder / "checkpoint", _random_model(architecture), tokenizer, {}, pairs)
        if listed:
            (folder / "checkpoint" / SHORTLIST).write_bytes(_random_shortlist())

    return made_once(f"checkpoint {listed} {sorted(architecture.items())}", make) / "checkpoint"


def make_bundle(checkpoint: Path, precision: Precision) -> Synthetic:
    """Export a checkpoint of `make_checkpoint` as `dragoman export` does, its parity check included."""
    target = Target("synthetic", Languages.pair("en", "de"), precision, MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS)

    def make(folder: Path) -> None:
        export_bundle(checkpoint, folder / "bundle", target, read_corpus(checkpoint / PARITY))

    folder = made_once(f"bundle {checkpoint.parent.name} {precision}", make)
    return Synthetic(Bundle.open(folder / "bundle"), *load_checkpoint(checkpoint))


def candidates(checkpoint: Path, source: Sequence[int]) -> list[int] | None:
    """List what a sentence may become by the shortlist of a checkpoint; None: that has none."""
    file = checkpoint / SHORTLIST
    if not file.exists():
        return None
    return Shortlist(file.read_bytes(), file).candidates(source, VOCABULARY, joint=True).tolist()


def decode_alone(model: Transformer, source: Sequence[int], candidates: Sequence[int] | None = None) -> Expected:
    """Decode one sentence in plain PyTorch, with nothing beside it, of candidates alone if there are any."""
    config, bias = model.config, model.output.bias.data
    try:
        if candidates is not None:
            barred = torch.full_like(bias, -torch.inf)
            barred[list(candidates)] = bias[list(candidates)]
            model.output.bias.data = barred
        [ids] = greedy(model, [source], max_target_tokens=MAX_TARGET_TOKENS)
        with torch.inference_mode():
            target = torch.tensor([[config.start_id, *ids]])
            logits = model(pad([source], config.pad_id), torch.tensor([len(source)]), target)
    finally:
        model.output.bias.data = bias
    best = logits[0].topk(2).values
    ties = (best[:, 0] - best[:, 1] < TIE).nonzero()
    return Expected(ids, int(ties[0]) if len(ties) else len(ids) + 1)


def _random_shortlist() -> bytes:
    draw = np.random.default_rng(1)
    return shortlist([draw.choice(VOCABULARY, 3, replace=False).tolist() for _ in range(VOCABULARY)], first=8, best=3)


def _random_model(architecture: dict[str, Any]) -> Transformer:
    fields: dict[str, Any] = {
        "source_vocabulary_size": VOCABULARY,
        "target_vocabulary_size": VOCABULARY,
        "d_model": 32,
        "heads": 2,
        "d_ff": 64,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "max_positions": max(MAX_SOURCE_TOKENS, MAX_TARGET_TOKENS) + 1,
        "tie_output": False,  # else a random model repeats its last token for ever
        "output_bias": True,
    }
    config = TransformerConfig(**fields | architecture)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = Transformer(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "cross_attention" in name and parameter.dim() == 2:
                parameter.mul_(CROSS_ATTENTION_GAIN)
        model.output.bias[config.eos_id] = EOS_BIAS
    return model
