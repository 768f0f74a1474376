"""Hugging Face transformers as a side of a comparison, in this process: generate() over static batches, in fp32."""

from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn

from bench.peers.checkpoint import Array, Checkpoint
from bench.peers.contender import Program, Settings
from bench.sentences import Sentences
from model.config import TransformerConfig
from model.importing.bart_like import Embeddings, recipes
from service import cores

NAME = "transformers"
# What the class that holds the weights does not leave open.
_GIVEN = {"norm": "pre", "norm_epsilon": 1e-5, "embedding_norm": False, "share_embeddings": True}
_SHARED, _OUTPUT = "model.shared.weight", "lm_head.weight"


def program(checkpoint: Checkpoint, *, quick: bool = False) -> Program:
    """Make a side of the checkpoint's weights in a model of that library, and the settings worth a try.

    Args:
        checkpoint: with normalization before each part, as the class that holds it has.
    """
    threads = cores.available()
    model = load(checkpoint)
    return Program(
        NAME,
        "fp32",
        offline=[{"threads": threads, "batch_size": size} for size in ((64,) if quick else (32, 64, 128))],
        single=[{"threads": count} for count in sorted({1, threads})],
        open=lambda settings: _InProcess(model, settings),
    )


def load(checkpoint: Checkpoint) -> Any:
    """Load the checkpoint's weights into a PegasusForConditionalGeneration: pre-norm, positions from a table.

    Raises:
        ValueError: the class cannot hold the checkpoint.
    """
    config = checkpoint.config
    unfit = [f"{name} {config[name]}" for name, value in _GIVEN.items() if config[name] != value]
    if unfit:
        raise ValueError(f"{checkpoint.folder}: the class has no {', '.join(unfit)}")
    with torch.device("meta"):  # weights come from the checkpoint: draw none
        model = transformers.PegasusForConditionalGeneration(_config(config))
    state = {name: torch.from_numpy(array) for name, array in _state(checkpoint).items()}
    model.load_state_dict(state, strict=True, assign=True)
    model.eval()  # type: ignore[no-untyped-call]
    return model


class _InProcess:
    def __init__(self, model: Any, settings: Settings) -> None:
        torch.set_num_threads(settings["threads"])
        self._model = model
        self._size = settings.get("batch_size", 1)

    def translate(self, sentences: Sentences) -> list[list[int]]:
        """Translate batches of like length, as its users make them."""
        order = sorted(range(len(sentences)), key=lambda index: len(sentences.sources[index]))
        targets: list[list[int]] = [[] for _ in order]
        for start in range(0, len(order), self._size):
            rows = order[start : start + self._size]
            limit = max(sentences.limits[row] for row in rows)
            for row, ids in zip(rows, self._generate([sentences.sources[row] for row in rows], limit), strict=True):
                targets[row] = ids
        return targets

    def close(self) -> None:
        """Do nothing: the next side shares the model."""

    @torch.inference_mode()
    def _generate(self, sources: list[list[int]], limit: int) -> list[list[int]]:
        config = self._model.config
        rows = [torch.tensor(ids) for ids in sources]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_token_id)
        lengths = torch.tensor([len(ids) for ids in sources])
        mask = torch.arange(padded.shape[1]) < lengths[:, None]
        out: Tensor = self._model.generate(
            padded, attention_mask=mask.long(), do_sample=False, num_beams=1, max_new_tokens=limit
        )
        # Behind the start id.
        return [_until(config.eos_token_id, ids) for ids in out[:, 1:].tolist()]


def _until(eos_id: int, ids: list[int]) -> list[int]:
    return ids[: ids.index(eos_id)] if eos_id in ids else ids


def _config(config: dict[str, Any]) -> Any:
    return transformers.PegasusConfig(
        vocab_size=config["target_vocabulary_size"],
        max_position_embeddings=config["max_positions"],
        encoder_layers=config["encoder_layers"],
        encoder_ffn_dim=config["d_ff"],
        encoder_attention_heads=config["heads"],
        decoder_layers=config["decoder_layers"],
        decoder_ffn_dim=config["d_ff"],
        decoder_attention_heads=config["heads"],
        activation_function=config["activation"],
        d_model=config["d_model"],
        scale_embedding=config["scale_embedding"],
        tie_word_embeddings=config["tie_output"],
        pad_token_id=config["pad_id"],
        eos_token_id=config["eos_id"],
        decoder_start_token_id=config["start_id"],
        forced_eos_token_id=None,
    )


def _state(checkpoint: Checkpoint) -> dict[str, Array]:
    """Return the weights under that class's names."""
    weights, embedding = checkpoint.weights, checkpoint.weights["source_embedding.weight"]
    state = {
        "model.encoder.embed_tokens.weight": embedding,
        "model.decoder.embed_tokens.weight": embedding,
        "model.encoder.embed_positions.weight": checkpoint.positions("source"),
        "model.decoder.embed_positions.weight": checkpoint.positions("target"),
        _OUTPUT: checkpoint.output_weight,
        "final_logits_bias": weights.get("output.bias", 0 * checkpoint.output_weight[:, 0])[None],
    }
    config = TransformerConfig(**checkpoint.config)
    for ours, theirs in recipes(config, Embeddings(_SHARED, _SHARED, _OUTPUT)):
        state |= zip(theirs, np.split(weights[ours], len(theirs)), strict=True)
    return state
