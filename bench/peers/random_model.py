"""A checkpoint of a usual size with weights drawn at random: speed does not ask what a translation means.

It never ends a sentence by itself, so that every program decodes the same number of tokens: the rows of its output
projection have mean zero but that of the end-of-sentence id, which is negative throughout, and its last
normalization adds the same number to every component, which only that row can feel.

Tied, output and embedding are one. A random model would then repeat its last token for ever, which is the largest part
of its state: the last normalization changes the sign of half of the components, so that it is no part of it any more.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sentencepiece import SentencePieceTrainer

# 6+6 layers, the "base" model of arXiv:1706.03762.
BASE: dict[str, Any] = {
    "source_vocabulary_size": 32_000,
    "target_vocabulary_size": 32_000,
    "d_model": 512,
    "heads": 8,
    "d_ff": 2048,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "norm": "pre",
    "norm_epsilon": 1e-5,
    "activation": "relu",
    "positions": "sinusoidal",
    "position_offset": 0,
    "max_positions": 512,
    "scale_embedding": True,
    "embedding_norm": False,
    "share_embeddings": True,
    "tie_output": False,
    "output_bias": False,
    "pad_id": 0,
    "start_id": 1,
    "eos_id": 2,
    "unknown_id": 3,
}
_CONTROL_PIECES = 4
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
# Sentences to calibrate int8 and to compare the export with: few, for they are many tokens of a large model.
_PARITY_LINES = 16
# Logits of the others have a standard deviation of about 1; the end-of-sentence id gets minus this.
_EOS_MARGIN = 12.0

Array = NDArray[np.float32]


def write_checkpoint(folder: Path, config: dict[str, Any], tokens: int, seed: int) -> None:
    """Write config.json, model.safetensors, tokenizer.model and parity.tsv.

    Args:
        tokens: source tokens of a sentence, the end-of-sentence id among them.
    """
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    half = {name: weight.astype(np.float16) for name, weight in random_weights(config, random).items()}
    save_file(half, folder / "model.safetensors")
    words = _words(config)
    _train_tokenizer(folder / "tokenizer.model", words, config)
    lines = [f"{_sentence(words, tokens, random)}\t{_sentence(words, tokens, random)}\n" for _ in range(_PARITY_LINES)]
    (folder / "parity.tsv").write_text("".join(lines), encoding="utf-8")


def sentences(config: dict[str, Any], tokens: int, count: int, seed: int) -> list[str]:
    """Draw texts of `tokens` tokens each, the end-of-sentence id counted; always the same for a seed."""
    random = np.random.default_rng([seed, 1])
    words = _words(config)
    return [_sentence(words, tokens, random) for _ in range(count)]


def random_weights(config: dict[str, Any], random: np.random.Generator) -> dict[str, Array]:
    """Draw all weights of a pre-norm checkpoint with one embedding for both sides, by name."""
    width, inner = config["d_model"], config["d_ff"]
    weights: dict[str, Array] = {}

    def linear(name: str, outputs: int, inputs: int, blocks: int = 1) -> None:
        """Draw packed projections block by block (Glorot and Bengio, 2010), as if they lay apart."""
        bound = np.sqrt(6.0 / (outputs // blocks + inputs))
        weights[f"{name}.weight"] = random.uniform(-bound, bound, (outputs, inputs)).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str, bias: float = 0.0) -> None:
        weights[f"{name}.weight"] = np.ones(width, np.float32)
        weights[f"{name}.bias"] = np.full(width, bias, np.float32)

    def layer(name: str, *, cross: bool) -> None:
        norm(f"{name}.self_residual.norm")
        linear(f"{name}.self_attention.query_key_value", 3 * width, width, 3)
        linear(f"{name}.self_attention.output", width, width)
        if cross:
            norm(f"{name}.cross_residual.norm")
            linear(f"{name}.cross_attention.query", width, width)
            linear(f"{name}.cross_attention.key_value", 2 * width, width, 2)
            linear(f"{name}.cross_attention.output", width, width)
        norm(f"{name}.feed_forward_residual.norm")
        linear(f"{name}.feed_forward.expand", inner, width)
        linear(f"{name}.feed_forward.contract", width, inner)

    tied = config["tie_output"]
    embedding = weights["source_embedding.weight"] = _normal(random, (config["source_vocabulary_size"], width))
    for index in range(config["encoder_layers"]):
        layer(f"encoder.{index}", cross=False)
    for index in range(config["decoder_layers"]):
        layer(f"decoder.{index}", cross=True)
    norm("encoder_norm")
    # d_model components, each times a row's -d_model**-0.5: together minus the margin.
    norm("decoder_norm", bias=_EOS_MARGIN * width**-0.5)
    if tied:
        weights["decoder_norm.weight"][::2] = -1
    output = embedding if tied else _normal(random, (config["target_vocabulary_size"], width))
    output -= output.mean(axis=1, keepdims=True)
    output[config["eos_id"]] = -(width**-0.5)
    return weights if tied else {**weights, "output.weight": output}


def _normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    drawn: Array = random.standard_normal(shape, dtype=np.float32) * np.float32(shape[1] ** -0.5)
    return drawn


def _words(config: dict[str, Any]) -> list[str]:
    return [_word(index) for index in range(config["source_vocabulary_size"] - _CONTROL_PIECES)]


def _word(index: int) -> str:
    """Make a word of four letters, another one for each index."""
    letters = []
    for _ in range(4):
        index, letter = divmod(index, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def _sentence(words: list[str], tokens: int, random: np.random.Generator) -> str:
    return " ".join(words[index] for index in random.integers(len(words), size=tokens - 1))


def _train_tokenizer(file: Path, words: list[str], config: dict[str, Any]) -> None:
    """Train a SentencePiece model whose pieces are exactly these words."""
    with file.open("wb") as writer:
        SentencePieceTrainer.train(
            sentence_iterator=iter(words),
            model_writer=writer,
            model_type="word",
            vocab_size=config["source_vocabulary_size"],
            pad_id=config["pad_id"],
            bos_id=config["start_id"],
            eos_id=config["eos_id"],
            unk_id=config["unknown_id"],
            normalization_rule_name="identity",
            minloglevel=2,
        )
