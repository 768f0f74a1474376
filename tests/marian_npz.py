"""Small random models in Marian's own format: model.npz, decoder.yml, vocabularies and SentencePiece models."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from tests.hugging_face_files import model, pieces_of

SPECIAL = ["</s>", "<unk>"]
WIDTH, WIDE, HEADS = 16, 24, 2

SETTINGS: dict[str, Any] = {
    "type": "transformer",
    "enc-depth": 2,
    "dec-depth": 1,
    "dim-emb": WIDTH,
    "transformer-heads": HEADS,
    "transformer-dim-ffn": WIDE,
    "transformer-ffn-activation": "swish",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-guided-alignment-layer": "last",
    "version": "v1.9.0",
}
# As the students of Firefox are.
STUDENT = {
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "transformer-ffn-activation": "relu",
    "layer-normalization": False,
    "output-omit-bias": False,
}
PRE = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}


def write(
    folder: Path,
    *,
    seed: int = 0,
    separate: bool = False,
    tied: bool = True,
    marks: tuple[str, ...] = (),
    **changed: Any,
) -> Path:
    """Write a model; `changed` are settings, with low lines in the place of hyphens."""
    folder.mkdir(parents=True)
    models = {name: model(name) for name in ("source.spm", "target.spm")}
    for name, content in models.items():
        (folder / name).write_bytes(content)
    source, target = (pieces_of(SentencePieceProcessor(model_proto=content))[3:] for content in models.values())
    sides = [source, target] if separate else [[*source, *target]]
    files = ["source.yml", "target.yml"] if separate else ["vocab.yml"]
    vocabularies = [list(dict.fromkeys([*SPECIAL, *marks, *pieces])) for pieces in sides]
    for file, pieces in zip(files, vocabularies, strict=True):
        write_vocabulary(folder / file, pieces)
    settings = SETTINGS | {key.replace("_", "-"): value for key, value in changed.items()}
    settings["dim-vocabs"] = [len(vocabularies[0]), len(vocabularies[-1])]
    (folder / "decoder.yml").write_text(
        yaml.safe_dump({"models": ["/of/the/training/model.npz"], "vocabs": [files[0], files[-1]]})
    )
    np.savez(folder / "model.npz", **random_weights(settings, seed, separate=separate, tied=tied))
    return folder


def write_vocabulary(file: Path, pieces: list[str]) -> None:
    file.write_text(
        "".join(f"{json.dumps(piece, ensure_ascii=False)}: {id_}\n" for id_, piece in enumerate(pieces)),
        encoding="utf-8",
    )


def random_weights(settings: dict[str, Any], seed: int, *, separate: bool, tied: bool) -> dict[str, NDArray[Any]]:
    """Draw weights that are wide enough for every one of them to change what is translated."""
    draw = np.random.default_rng(seed)
    width, wide = settings["dim-emb"], settings["transformer-dim-ffn"]
    content = np.frombuffer(yaml.safe_dump(settings).encode() + b"\0", np.int8)
    weights: dict[str, NDArray[Any]] = {"special:model.yml": content}

    def normal(name: str, *shape: int, deviation: float, mean: float = 0.0) -> None:
        weights[name] = draw.normal(mean, deviation, shape).astype(np.float32)

    def linear(name: str, suffix: str, inputs: int, outputs: int, gain: float = 1.0) -> None:
        normal(f"{name}_W{suffix}", inputs, outputs, deviation=gain * inputs**-0.5)
        normal(f"{name}_b{suffix}", 1, outputs, deviation=0.3)

    def norm(name: str, suffix: str = "") -> None:
        normal(f"{name}_ln_scale{suffix}", 1, width, deviation=0.3, mean=1.0)
        normal(f"{name}_ln_bias{suffix}", 1, width, deviation=0.3)

    is_pre = settings["transformer-preprocess"] == "n"
    rows = settings["dim-vocabs"]
    for side, count in zip(("encoder", "decoder") if separate else ("",), rows, strict=False):
        normal(f"{side}_Wemb".lstrip("_"), count, width, deviation=1.0)
    if not tied:
        normal("decoder_ff_logit_out_W", width, rows[-1], deviation=1.0)
    normal("decoder_ff_logit_out_b", 1, rows[-1], deviation=0.5)
    for side, depth in (("encoder", settings["enc-depth"]), ("decoder", settings["dec-depth"])):
        if "n" in settings["transformer-postprocess-emb"]:
            norm(f"{side}_emb", "_pre")
        if is_pre:
            norm(f"{side}_top")
        for layer in (f"{side}_l{number}" for number in range(1, depth + 1)):
            recurs = side == "decoder" and settings["transformer-decoder-autoreg"] == "rnn"
            if recurs:
                normal(f"{layer}_rnn_W", width, width, deviation=width**-0.5)
                linear(f"{layer}_rnn", "f", width, width)
                norm(f"{layer}_rnn_ffn")
            for attention in ([] if recurs else ["self"]) + (["context"] if side == "decoder" else []):
                for projection in "qkvo":
                    linear(f"{layer}_{attention}", projection, width, width, 4.0 if attention == "context" else 1.0)
                norm(f"{layer}_{attention}_Wo", "_pre" if is_pre else "")
            linear(f"{layer}_ffn", "1", width, wide)
            linear(f"{layer}_ffn", "2", wide, width)
            norm(f"{layer}_ffn_ffn", "_pre" if is_pre else "")
    return weights


def resize(file: Path, rows: int) -> None:
    """Give a model of one vocabulary as many rows as another one has pieces."""
    weights = dict(np.load(file))
    weights["Wemb"] = np.resize(weights["Wemb"], (rows, WIDTH))
    weights["decoder_ff_logit_out_b"] = np.resize(weights["decoder_ff_logit_out_b"], (1, rows))
    np.savez(file, **weights)
