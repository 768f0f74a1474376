"""The log-probabilities of the engine are those of plain PyTorch, for the ids that the engine chose."""

import pytest
import torch

from model.data import pad
from model.transformer import Transformer
from service.decode import Decode, FinishReason
from service.engine.offline import OfflineEngine
from service.options import Decoding
from tests import synthetic
from tests.synthetic import Synthetic


def decode(subject: Synthetic, limit: int) -> list[Decode]:
    eos_id = subject.bundle.manifest.eos_id
    segments = [
        Decode([*subject.tokenizer.encode(text), eos_id], limit, decoding=Decoding(wants_log_probability=True))
        for text in synthetic.texts()
    ]
    OfflineEngine(subject.bundle, threads=1, slots=4).decode(segments)
    return segments


def log_probability_in_pytorch(model: Transformer, segment: Decode) -> float:
    """All target ids at once, in one full forward pass."""
    config = model.config
    decoded = segment.target_ids + [config.eos_id] * (segment.finish_reason is FinishReason.EOS)
    target = torch.tensor([[config.start_id, *decoded[:-1]]])
    source = pad([segment.source_ids], config.pad_id)
    with torch.inference_mode():
        logits = model(source, torch.tensor([len(segment.source_ids)]), target)
    chosen = logits.log_softmax(-1)[0].gather(1, torch.tensor(decoded)[:, None])
    return float(chosen.sum())


@pytest.mark.parametrize("limit", [1, 3, synthetic.MAX_TARGET_TOKENS])
def test_fp32_is_plain_pytorch(fp32: Synthetic, limit: int) -> None:
    segments = decode(fp32, limit)
    for segment in segments:
        expected = log_probability_in_pytorch(fp32.model, segment)
        assert segment.log_probability == pytest.approx(expected, abs=1e-4)
        assert segment.log_probability < 0
    if limit == synthetic.MAX_TARGET_TOKENS:
        assert {segment.finish_reason for segment in segments} == {FinishReason.EOS, FinishReason.LENGTH}


def test_int8_is_near_to_it(int8: Synthetic) -> None:
    """Within what rounding to 8 bits does: the logits are of the model's own scale."""
    for segment in decode(int8, synthetic.MAX_TARGET_TOKENS):
        expected = log_probability_in_pytorch(int8.model, segment)
        assert segment.log_probability == pytest.approx(expected, rel=0.15)
