"""Folders of small tokenizers as the families have them, trained on the sentences of the tests."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sentencepiece
from sentencepiece import SentencePieceProcessor

PAIRS = Path(__file__).parents[3] / "data" / "en-de.tsv"
NLLB_LANGUAGES = ["ace_Arab", "ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]
MBART_50_LANGUAGES = ["ar_AR", "de_DE", "en_XX", "zh_CN", "pt_XX"]


def train(file: Path, sentences: list[str], **options: object) -> SentencePieceProcessor:
    model = io.BytesIO()
    settings = {"vocab_size": 500, "minloglevel": 2, "hard_vocab_limit": False, "character_coverage": 0.99}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, **(settings | options)
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(model.getvalue())
    return SentencePieceProcessor(model_proto=model.getvalue())


def pieces_of(processor: SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]


def write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@pytest.fixture(scope="session")
def english_and_german() -> tuple[list[str], list[str]]:
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [row[0] for row in rows], [row[1] for row in rows]


@pytest.fixture(scope="session")
def marian_folder(
    english_and_german: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Writes all files but the weights of an OPUS-MT model, joint or with separate vocabularies."""
    models = tmp_path_factory.mktemp("marian")
    source = pieces_of(train(models / "source.spm", english_and_german[0], vocab_size=300))
    target = pieces_of(train(models / "target.spm", english_and_german[1]))

    def write(folder: Path, *, separate: bool = False, marks: tuple[str, ...] = (), **config: object) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("source.spm", "target.spm"):
            (folder / name).write_bytes((models / name).read_bytes())
        names = ["</s>", "<unk>", *marks]
        first, second = [source[3:], target[3:]] if separate else [[*source[3:], *target[3:]]] * 2
        ids = [
            {piece: id_ for id_, piece in enumerate(dict.fromkeys([*names, *side, "<pad>"]))}
            for side in (first, second)
        ]
        write_json(folder / "vocab.json", ids[0])
        if separate:
            write_json(folder / "target_vocab.json", ids[1])
        write_json(folder / "tokenizer_config.json", {"source_lang": "eng", "separate_vocabs": separate})
        content = {
            "model_type": "marian",
            "architectures": ["MarianMTModel"],
            "is_encoder_decoder": True,
            "vocab_size": len(ids[0]),
            "decoder_vocab_size": len(ids[1]),
            "share_encoder_decoder_embeddings": not separate,
            "d_model": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            "max_position_embeddings": 64,
            "activation_function": "swish",
            "pad_token_id": ids[1]["<pad>"],
            "decoder_start_token_id": ids[1]["<pad>"],
            "eos_token_id": 0,
            **config,
        }
        write_json(folder / "config.json", {key: value for key, value in content.items() if value is not None})
        return folder

    return write


@pytest.fixture(scope="session")
def fairseq_folder(
    english_and_german: tuple[list[str], list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Path]:
    """Writes all files but the weights of an M2M100, NLLB or mBART model."""
    models = tmp_path_factory.mktemp("fairseq")
    sentences = english_and_german[0] + english_and_german[1]
    train(models / "bpe", sentences, model_type="bpe")
    train(models / "unigram", sentences)

    def write(folder: Path, kind: str, languages: list[str], **settings: object) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        content = (models / ("bpe" if kind == "nllb" else "unigram")).read_bytes()
        pieces = pieces_of(SentencePieceProcessor(model_proto=content))
        (folder / ("spm.model" if kind == "m2m100" else "sentencepiece.bpe.model")).write_bytes(content)
        first = len(pieces) + 1
        if kind == "m2m100":
            # Some pieces have no id, and some ids no piece of SentencePiece.
            ids = {p: i for i, p in enumerate(["<s>", "<pad>", "</s>", "<unk>", *reversed(pieces[3:-9]), "madeup"])}
            write_json(folder / "vocab.json", ids)
            first = len(ids)
        write_json(folder / "special_tokens_map.json", {"additional_special_tokens": languages})
        write_json(folder / "tokenizer_config.json", settings)
        model_type, name = ("mbart", "MBart") if kind.startswith("mbart") else ("m2m_100", "M2M100")
        config = {
            "model_type": model_type,
            "architectures": [f"{name}ForConditionalGeneration"],
            "is_encoder_decoder": True,
            "vocab_size": first + len(languages) + 4,
        }
        write_json(folder / "config.json", config)
        return folder

    return write
