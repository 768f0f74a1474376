"""A T5 from its folder to the engine: the ids of Hugging Face's `generate`, in any company, in fp32 and int8."""

import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import sentencepiece

from dragoman.bundle import Bundle, Precision
from export.write import Target, export_bundle
from model.corpus import Corpus, read_corpus
from model.importing.run import import_folder
from model.layout import languages
from plugins import gpu
from plugins.offline.engine import OfflineEngine
from plugins.self_check.check import check
from service.decode import Decode
from service.engine.engine import Engine
from service.queue.mailbox import Mailbox
from service.telemetry.metrics import Metrics
from tests import hugging_face

PAIRS = Path(__file__).parents[1] / "data" / "en-de.tsv"
ROWS, LIMIT, SENTENCES = 300, 20, 24
# Heads wider together than the model, encoder and decoder of different depth, sources longer than all distances.
SETTINGS = {
    "vocab_size": ROWS,
    "d_model": 32,
    "d_kv": 16,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 3,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}
PROMPTS = {f"translation_en_to_{code}": {"prefix": f"to {code}: "} for code in ("de", "fr")}
Exported = Callable[[Precision], Bundle]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A T5 of random weights as Hugging Face has it, with a tokenizer and prompts, and the checkpoint of it."""
    folder = tmp_path_factory.mktemp("t5")
    theirs = hugging_face.save(hugging_face.random_model("t5", 4, **SETTINGS), folder / "theirs")
    corpus, content = read_corpus(PAIRS), io.BytesIO()
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*corpus.sources, *corpus.targets]),
        model_writer=content,
        vocab_size=ROWS - 10,
        minloglevel=2,
        **ids,
    )
    (theirs / "spiece.model").write_bytes(content.getvalue())
    config = json.loads((theirs / "config.json").read_bytes()) | {"task_specific_params": PROMPTS}
    (theirs / "config.json").write_text(json.dumps(config))
    import_folder(theirs, folder / "checkpoint")
    return folder


@pytest.fixture(scope="module")
def exported(folder: Path) -> Exported:
    """Exports in a precision, once."""

    @cache
    def exported(precision: Precision) -> Bundle:
        checkpoint, out = folder / "checkpoint", folder / precision
        found = languages(checkpoint)
        assert found is not None
        # Noise has no BLEU; references that share nothing with it keep that so in every precision.
        corpus = Corpus(read_corpus(PAIRS).sources[:20], ["你好"] * 20, [])
        export_bundle(checkpoint, out, Target("t5", found, precision, 64, LIMIT), corpus)
        return Bundle.open(out)

    return exported


def sources(bundle: Bundle) -> list[list[int]]:
    """Sentences of many lengths, to one language and the other."""
    tokenizer, manifest = bundle.tokenizer(), bundle.manifest
    before = manifest.languages.of("en").source_prefix
    tags = [manifest.languages.of(code).target_tag for code in ("de", "fr")]
    texts = sorted(read_corpus(PAIRS).sources, key=len)[:: 500 // SENTENCES][:SENTENCES]
    random.Random(1).shuffle(texts)
    return [
        [*before, *tags[place % 2], *tokenizer.encode(text)[:56], manifest.eos_id] for place, text in enumerate(texts)
    ]


def decoded(engine: OfflineEngine, batch: list[list[int]]) -> list[list[int]]:
    decodes = [Decode(ids, LIMIT) for ids in batch]
    engine.decode(decodes)
    return [decode.target_ids for decode in decodes]


def test_the_engine_gives_the_ids_of_generate(exported: Exported) -> None:
    bundle = exported("fp32")
    batch = sources(bundle)
    assert len({len(ids) for ids in batch}) > SENTENCES // 3
    expected = hugging_face.translate(hugging_face.random_model("t5", 4, **SETTINGS), batch, LIMIT)
    assert decoded(OfflineEngine(bundle, threads=1, slots=5), batch) == expected
    assert len({tuple(row) for row in expected}) > SENTENCES // 2
    assert len({len(row) for row in expected}) > 1


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("resident", [False, True])
def test_every_bit_is_the_same_in_company(exported: Exported, precision: Precision, resident: bool) -> None:
    bundle = exported(precision)
    graphs = gpu.open_graphs(bundle, "cpu") if resident else None
    engine = Engine(bundle, Mailbox(1000), Metrics(), device="cpu", threads=2, slots=8, graphs=graphs)
    check(engine, bundle.manifest, ROWS)


def test_int8_decodes_much_the_same(exported: Exported) -> None:
    """Tokens of noise are not compared but their beginnings: of most sentences the first token is the same."""
    batch = sources(exported("fp32"))
    fp32, int8 = (decoded(OfflineEngine(exported(precision), threads=1), batch) for precision in ("fp32", "int8"))
    assert sum(one[:1] == other[:1] for one, other in zip(fp32, int8, strict=True)) > SENTENCES // 2
