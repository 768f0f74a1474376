"""The n-best lists of imported models are those of Hugging Face's `generate`, scores included."""

import json

import pytest
import torch
from transformers import PreTrainedModel

from dragoman.bundle import Bundle
from dragoman.framing import Frame
from plugins.offline.engine import OfflineEngine
from service.decode import Decode, FinishReason
from service.options import Decoding
from tests import hugging_face, hugging_face_files
from tests.imported import imported

TOKENS = 14
TARGETS = {"marian": "fr", "nllb": "de", "mbart25": "ar"}
SEARCHES = [(2, 1.0), (4, 1.0), (5, 0.0), (3, 2.0), (4, -1.0)]


def without_banned(model: PreTrainedModel) -> PreTrainedModel:
    """Take the probability of what it never says from a model: `generate` bans it, and leaves it that."""
    head = model.lm_head
    model.lm_head = torch.nn.Linear(head.in_features, head.out_features)
    with torch.no_grad():
        model.lm_head.weight.copy_(head.weight)
        model.lm_head.bias.zero_()[model.config.pad_token_id] = -1e9
    return model


@pytest.mark.torch
@pytest.mark.parametrize("kind", TARGETS)
def test_every_list_is_that_of_generate(kind: str) -> None:
    folder, _, path = imported(kind)
    bundle = Bundle.open(path)
    manifest, tokenizer = bundle.manifest, bundle.tokenizer()
    frame = Frame.of(manifest.languages, manifest, "en", TARGETS[kind])
    sources = [frame.around(tokenizer.encode(text)) for text in hugging_face_files.sentences()[0][:6]]
    cases = [(source, *search) for source in sources for search in SEARCHES]
    decodes = [
        Decode(
            source,
            TOKENS,
            start_ids=frame.start_ids,
            decoding=Decoding(beam_size=size, length_penalty=penalty, alternatives=size),
        )
        for source, size, penalty in cases
    ]
    OfflineEngine(bundle, slots=12, threads=1).decode(decodes)

    _, model_class = hugging_face.CLASSES[json.loads((folder / "config.json").read_text())["model_type"]]
    theirs = without_banned(model_class.from_pretrained(folder).eval())
    start_id, *given = frame.start_ids or (manifest.start_id,)
    for decode, (source, size, penalty) in zip(decodes, cases, strict=True):
        output = theirs.generate(
            input_ids=torch.tensor([source]),
            num_beams=size,
            num_return_sequences=size,
            length_penalty=penalty,
            max_new_tokens=TOKENS + len(given),
            do_sample=False,
            decoder_start_token_id=start_id,
            forced_bos_token_id=given[0] if given else None,
            forced_eos_token_id=None,
            return_dict_in_generate=True,
            output_scores=True,
        )
        expected = []
        for ids in output.sequences[:, 1 + len(given) :].tolist():
            ended = manifest.eos_id in ids
            reason = FinishReason.EOS if ended else FinishReason.LENGTH
            expected.append((ids[: ids.index(manifest.eos_id)] if ended else ids[:TOKENS], reason))
        assert [(list(each.target_ids), each.finish_reason) for each in decode.hypotheses] == expected
        assert [each.score for each in decode.hypotheses] == pytest.approx(output.sequences_scores.tolist(), rel=1e-4)
        assert decode.target_ids == expected[0][0]
    assert len({tuple(decode.target_ids) for decode in decodes}) > len(sources)
