"""The log-probabilities of the engine are those of plain PyTorch, for the ids that the engine chose."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch

from model.data import pad
from model.transformer import Transformer
from plugins.offline.engine import OfflineEngine
from service.decode import Decode, FinishReason
from service.options import SCORING, Decoding
from tests import synthetic, synthetic_model
from tests.synthetic import Synthetic

LIMIT = synthetic.MAX_TARGET_TOKENS


@pytest.fixture(scope="module", params=[{}, synthetic_model.RECURRENT], ids=["attention", "recurrence"])
def exact(request: pytest.FixtureRequest) -> Synthetic:
    return synthetic_model.make_bundle(synthetic_model.make_checkpoint(**request.param), "fp32")


def decode(subject: Synthetic, limit: int) -> list[Decode]:
    eos_id = subject.bundle.manifest.eos_id
    segments = [
        Decode([*subject.tokenizer.encode(text), eos_id], limit, decoding=Decoding(wants_log_probability=True))
        for text in synthetic.texts()
    ]
    OfflineEngine(subject.bundle, threads=1, slots=4).decode(segments)
    return segments


def score_again(subject: Synthetic, segments: list[Decode], slots: int) -> list[Decode]:
    """Give the engine what it has decoded, in another company."""
    eos_id = subject.bundle.manifest.eos_id
    scored = [
        Decode(segment.source_ids, LIMIT, decoding=SCORING, scored_ids=(*segment.target_ids, eos_id))
        for segment in segments
    ]
    OfflineEngine(subject.bundle, threads=1, slots=slots).decode(scored[::-1])
    return scored


def log_probabilities_in_pytorch(model: Transformer, source_ids: list[int], decoded: Sequence[int]) -> list[float]:
    """Of all target ids at once, in one full forward pass."""
    config = model.config
    target = torch.tensor([[config.start_id, *decoded[:-1]]])
    source = pad([source_ids], config.pad_id)
    with torch.inference_mode():
        logits = model(source, torch.tensor([len(source_ids)]), target)
    chosen: list[float] = logits.log_softmax(-1)[0].gather(1, torch.tensor(decoded)[:, None])[:, 0].tolist()
    return chosen


def log_probability_in_pytorch(model: Transformer, segment: Decode) -> float:
    """Of what the engine chose."""
    ends = [model.config.eos_id] * (segment.finish_reason is FinishReason.EOS)
    return sum(log_probabilities_in_pytorch(model, segment.source_ids, segment.target_ids + ends))


@pytest.mark.parametrize("limit", [1, 3, synthetic.MAX_TARGET_TOKENS])
def test_fp32_is_plain_pytorch(exact: Synthetic, limit: int) -> None:
    segments = decode(exact, limit)
    for segment in segments:
        expected = log_probability_in_pytorch(exact.model, segment)
        assert segment.log_probability == pytest.approx(expected, abs=1e-4)
        assert segment.log_probability < 0
    if limit == synthetic.MAX_TARGET_TOKENS:
        assert {segment.finish_reason for segment in segments} == {FinishReason.EOS, FinishReason.LENGTH}


def test_int8_is_near_to_it(int8: Synthetic) -> None:
    """Within what rounding to 8 bits does: the logits are of the model's own scale."""
    for segment in decode(int8, synthetic.MAX_TARGET_TOKENS):
        expected = log_probability_in_pytorch(int8.model, segment)
        assert segment.log_probability == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_what_was_decoded_has_the_same_score_to_the_last_bit_where_it_is_given(precision: str, request) -> None:
    subject: Synthetic = request.getfixturevalue(precision)
    decoded = decode(subject, LIMIT)
    ended = [segment for segment in decoded if segment.finish_reason is FinishReason.EOS]
    assert len(ended) >= 6
    for slots in (1, 3, 16):
        for segment, scored in zip(ended, score_again(subject, ended, slots), strict=True):
            assert (scored.target_ids, scored.finish_reason) == (segment.target_ids, FinishReason.EOS)
            assert scored.log_probability == segment.log_probability
            assert len(scored.token_log_probabilities) == scored.decoded_tokens == segment.decoded_tokens


def test_the_scores_of_tokens_that_the_model_would_not_choose_are_those_of_plain_pytorch(exact: Synthetic) -> None:
    eos_id = exact.bundle.manifest.eos_id
    sources = [[*exact.tokenizer.encode(text), eos_id] for text in synthetic.texts()]
    # The translation of each is taken to be the source of the next one.
    pairs = [(source, tuple(target[:20])) for source, target in pairwise(sources)]
    pairs = [(source, target if target[-1] == eos_id else (*target, eos_id)) for source, target in pairs]
    scored = [Decode(source, LIMIT, decoding=SCORING, scored_ids=target) for source, target in pairs]
    OfflineEngine(exact.bundle, threads=1, slots=4).decode(scored)
    for (source, target), decode in zip(pairs, scored, strict=True):
        expected = log_probabilities_in_pytorch(exact.model, source, target)
        assert decode.token_log_probabilities == pytest.approx(expected, abs=1e-4)
