"""A checkpoint of a usual size with weights drawn at random: speed does not ask what a translation means.

It never ends a sentence by itself, so that every program decodes the same number of tokens: the rows of its output
projection have mean zero but that of the end-of-sentence id, which is negative throughout, and its last
normalization adds the same number to every component, which only that row can feel.

Tied, output and embedding are one. A random model would then repeat its last token for ever, which is the largest part
of its state: the last normalization changes the sign of half of the components, so that it is no part of it any more.
"""

import json
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sentencepiece import SentencePieceTrainer

from model.config import TransformerConfig
from model.parameters import parameter_shapes

TOKENS: Final = 25  # of each sentence, its end counted, and of its translation
SEED: Final = 1

_CONTROL_PIECES = 4
_BLOCKS = {"query_key_value": 3, "key_value": 2}
# Sentences to calibrate int8 and to compare the export with: few, for they are many tokens of a large model.
_PARITY_LINES = 16
# Logits of the others have a standard deviation of about 1; the end-of-sentence id gets minus this.
_EOS_MARGIN = 12.0

Array = NDArray[np.float32]


def _config(vocabulary: int, layers: int, **fields: Any) -> dict[str, Any]:
    sizes = {"source_vocabulary_size": vocabulary, "target_vocabulary_size": vocabulary}
    given = sizes | {"encoder_layers": layers, "decoder_layers": layers, "tie_output": True} | fields
    return TransformerConfig.model_validate(given).model_dump()


_WIDTH: Final = {"d_model": 512, "heads": 8, "d_ff": 2048}
_TWICE: Final = {"d_model": 1024, "heads": 16, "d_ff": 4096}
SHAPES: Final[dict[str, dict[str, Any]]] = {
    "base": _config(32_000, 6, tie_output=False, **_WIDTH),  # of arXiv:1706.03762
    "large": _config(32_000, 12, tie_output=False, **_TWICE),  # 0.5 billion parameters
    "opus-mt": _config(58_101, 6, activation="silu", **_WIDTH),
    "nllb-600m": _config(256_206, 12, **_TWICE),
}


def drawn_checkpoint(shape: str, work: Path) -> Path:
    """Return the checkpoint of a shape, made if it is not in the folder."""
    folder, partial = work / "checkpoint", work / "checkpoint.partial"
    if not folder.exists():
        write_checkpoint(partial, SHAPES[shape], TOKENS, SEED)
        partial.rename(folder)
    return folder


def write_checkpoint(folder: Path, config: dict[str, Any], tokens: int, seed: int) -> None:
    """Write config.json, model.safetensors, tokenizer.model, and parity.tsv, its sentences of `tokens` tokens."""
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
    shapes = parameter_shapes(TransformerConfig(**config))
    weights = {name: _weight(name, shape, random) for name, shape in shapes.items()}
    width = config["d_model"]
    # d_model components, each times a row's -d_model**-0.5: together minus the margin.
    weights["decoder_norm.bias"][:] = _EOS_MARGIN * width**-0.5
    if config["tie_output"]:
        weights["decoder_norm.weight"][::2] = -1
    output = weights["source_embedding.weight" if config["tie_output"] else "output.weight"]
    output -= output.mean(axis=1, keepdims=True)
    output[config["eos_id"]] = -(width**-0.5)
    return weights


def _weight(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Draw products as Glorot and Bengio (2010), packed ones block by block, as if they lay apart."""
    if len(shape) == 1:
        return np.full(shape, name.endswith("norm.weight"), np.float32)
    if name in ("source_embedding.weight", "output.weight"):
        return random.standard_normal(shape, dtype=np.float32) * np.float32(shape[1] ** -0.5)
    bound = np.sqrt(6.0 / (shape[0] // _BLOCKS.get(name.split(".")[-2], 1) + shape[1]))
    return random.uniform(-bound, bound, shape).astype(np.float32)


def _words(config: dict[str, Any]) -> list[str]:
    """Make a word of four letters for each piece of text."""
    fours = islice(product(ascii_lowercase, repeat=4), config["source_vocabulary_size"] - _CONTROL_PIECES)
    return ["".join(reversed(four)) for four in fours]


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
