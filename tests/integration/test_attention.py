"""The attention that the engine keeps is that of plain PyTorch, for the ids that the engine chose."""

import numpy as np
import pytest

from model.inspection.attention_maps import attention_maps
from plugins import gpu
from plugins.offline.engine import OfflineEngine
from service.decode import Decode
from service.options import Decoding
from tests import synthetic, synthetic_model
from tests.synthetic import Synthetic

ALIGNED = Decoding(wants_attention=True)


@pytest.fixture(scope="module", params=[{}, synthetic_model.RECURRENT], ids=["attention", "recurrence"])
def exact(request: pytest.FixtureRequest) -> Synthetic:
    return synthetic_model.make_bundle(synthetic_model.make_checkpoint(**request.param), "fp32")


def decode(subject: Synthetic, decoding: Decoding, *, resident: bool = False, **fields: object) -> list[Decode]:
    eos_id = subject.bundle.manifest.eos_id
    segments = [
        Decode([*subject.tokenizer.encode(text), eos_id], synthetic.MAX_TARGET_TOKENS, decoding=decoding, **fields)
        for text in synthetic.texts()
    ]
    graphs = gpu.open_graphs(subject.bundle, "cpu") if resident else None
    OfflineEngine(subject.bundle, threads=1, slots=5, graphs=graphs).decode(segments)
    return segments


def in_pytorch(subject: Synthetic, source_ids: list[int], target_ids: list[int]) -> np.ndarray:
    """What the chosen heads look at while each token is chosen."""
    manifest = subject.bundle.manifest
    maps = attention_maps(subject.model, source_ids, [manifest.start_id, *target_ids])
    title = f"decoder layer {manifest.alignment.layer}, to the source"
    [weights] = [each.weights for each in maps if each.title == title]
    return weights[list(manifest.alignment.heads)].mean(0)[: len(target_ids)].numpy()


@pytest.mark.parametrize("resident", [False, True])
def test_greedy_fp32_is_plain_pytorch(exact: Synthetic, resident: bool) -> None:
    for segment in decode(exact, ALIGNED, resident=resident, prefix_ids=(9, 17)):
        expected = in_pytorch(exact, segment.source_ids, segment.target_ids)
        assert len(segment.attention) == len(segment.target_ids)
        np.testing.assert_allclose(segment.attention, expected, atol=1e-5)


def test_each_hypothesis_of_a_beam_has_its_own(exact: Synthetic) -> None:
    for segment in decode(exact, Decoding(beam_size=4, alternatives=4, wants_attention=True), prefix_ids=(9,)):
        np.testing.assert_array_equal(segment.attention, segment.hypotheses[0].attention)
        for found in segment.hypotheses:
            expected = in_pytorch(exact, segment.source_ids, list(found.target_ids))
            np.testing.assert_allclose(found.attention, expected, atol=1e-5)


def test_int8_is_near_to_it(int8: Synthetic) -> None:
    """Within what rounding to 8 bits does."""
    apart = [
        np.abs(np.array(segment.attention) - in_pytorch(int8, segment.source_ids, segment.target_ids)).mean()
        for segment in decode(int8, ALIGNED)
        if segment.target_ids
    ]
    assert float(np.mean(apart)) < 0.05


def test_nobody_else_moves_a_bit(int8: Synthetic) -> None:
    together = decode(int8, ALIGNED)
    for segment in together:
        alone = Decode(segment.source_ids, segment.max_target_tokens, decoding=ALIGNED)
        OfflineEngine(int8.bundle, threads=1, slots=1).decode([alone])
        assert alone.target_ids == segment.target_ids
        np.testing.assert_array_equal(alone.attention, segment.attention)


def test_nothing_is_kept_where_nobody_asks(int8: Synthetic) -> None:
    assert all(segment.attention == [] for segment in decode(int8, Decoding()))
    for segment in decode(int8, Decoding(beam_size=2, alternatives=2)):
        assert [list(found.attention) for found in segment.hypotheses] == [[], []]
