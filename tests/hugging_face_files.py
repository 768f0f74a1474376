"""Small tokenizers as the families of Hugging Face have them, trained on the sentences of the tests."""

import io
import json
from functools import cache
from pathlib import Path

import sentencepiece
from sentencepiece import SentencePieceProcessor

PAIRS = Path(__file__).parent / "data" / "en-de.tsv"
NLLB_LANGUAGES = ["ace_Arab", "ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant"]
MBART_50_LANGUAGES = ["ar_AR", "de_DE", "en_XX", "zh_CN", "pt_XX"]


def train(lines: list[str], **options: object) -> bytes:
    """Train a SentencePiece model."""
    content = io.BytesIO()
    settings = {"vocab_size": 500, "minloglevel": 2, "hard_vocab_limit": False, "character_coverage": 0.99}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=content, **(settings | options)
    )
    return content.getvalue()


def pieces_of(processor: SentencePieceProcessor) -> list[str]:
    return [processor.id_to_piece(id_) for id_ in range(processor.get_piece_size())]


def write_json(file: Path, content: object) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


@cache
def sentences() -> tuple[list[str], list[str]]:
    """Gives the English and the German sentences of the tests."""
    rows = [line.split("\t") for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [row[0] for row in rows], [row[1] for row in rows]


@cache
def model(name: str) -> bytes:
    """Trains a SentencePiece model, once."""
    english, german = sentences()
    if name == "source.spm":
        return train(english, vocab_size=300)
    if name == "target.spm":
        return train(german)
    return train(english + german, model_type=name)


def marian_files(folder: Path, *, separate: bool = False, marks: tuple[str, ...] = (), **config: object) -> Path:
    """Write all files but the weights of an OPUS-MT model, joint or with separate vocabularies."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(model(name))
    names = ["</s>", "<unk>", *(["<pad>"] if separate else []), *marks]  # the padding has one id for both sides
    source, target = (pieces_of(SentencePieceProcessor(model_proto=model(n))) for n in ("source.spm", "target.spm"))
    first, second = [source[3:], target[3:]] if separate else [[*source[3:], *target[3:]]] * 2
    ids = [
        {piece: id_ for id_, piece in enumerate(dict.fromkeys([*names, *side, "<pad>"]))} for side in (first, second)
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


def fairseq_files(folder: Path, kind: str, languages: list[str], **settings: object) -> Path:
    """Write all files but the weights of an M2M100, NLLB or mBART model."""
    folder.mkdir(parents=True, exist_ok=True)
    content = model("bpe" if kind == "nllb" else "unigram")
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
