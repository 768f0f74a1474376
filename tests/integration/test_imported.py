"""Imported models in the engine: several target languages in one batch, and each id as Hugging Face has it."""

import json

import pytest

from dragoman.bundle import Bundle
from dragoman.framing import Frame
from plugins.offline.engine import OfflineEngine
from service.decode import Decode, FinishReason
from tests import hugging_face, hugging_face_files
from tests.imported import imported

TOKENS = 16
TARGETS = {
    "marian": ["de", "fr", "es"],
    "nllb": ["de", "fr", "zh-Hant"],
    "mbart25": ["de", "ar", "pt"],
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", list(TARGETS))
def test_every_id_is_that_of_generate(kind: str) -> None:
    folder, _, path = imported(kind)
    bundle = Bundle.open(path)
    known, tokenizer = bundle.manifest.languages, bundle.tokenizer()
    frames = [Frame.of(known, bundle.manifest, "en", code) for code in TARGETS[kind]]
    texts = hugging_face_files.sentences()[0][:5]
    cases = [(frame, frame.around(tokenizer.encode(text))) for text in texts for frame in frames]
    decodes = [Decode(ids, TOKENS, start_ids=frame.start_ids) for frame, ids in cases]
    OfflineEngine(bundle, slots=4, threads=1).decode(decodes)

    _, model_class = hugging_face.CLASSES[json.loads((folder / "config.json").read_text())["model_type"]]
    theirs = model_class.from_pretrained(folder).eval()
    start = bundle.manifest.start_id
    starts = [frame.start_ids or (start,) for frame, _ in cases]
    expected = hugging_face.translate(theirs, [ids for _, ids in cases], TOKENS, starts)
    for decode, ids in zip(decodes, expected, strict=True):
        # The engine ends what repeats itself, and has said the same up to there.
        whole = decode.finish_reason is not FinishReason.REPETITION
        assert decode.target_ids == ids[: None if whole else len(decode.target_ids)]
    assert len({tuple(decode.target_ids) for decode in decodes}) > len(texts)
