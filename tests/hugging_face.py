"""Small random models of Hugging Face's own classes, saved as it saves them, and what it translates with them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GenerationConfig,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedModel,
    T5Config,
    T5ForConditionalGeneration,
    UMT5Config,
    UMT5ForConditionalGeneration,
)

from model.checkpoint import load_weights
from model.data import pad
from model.importing.checkpoint import write_checkpoint
from model.importing.families import family_of
from model.importing.family import Texts
from model.importing.source import Source
from model.importing.weights import open_weights
from model.layout import WEIGHTS
from model.transformer import Transformer

CLASSES: dict[str, tuple[Any, Any]] = {
    "marian": (MarianConfig, MarianMTModel),
    "m2m_100": (M2M100Config, M2M100ForConditionalGeneration),
    "mbart": (MBartConfig, MBartForConditionalGeneration),
    "bart": (BartConfig, BartForConditionalGeneration),
}

T5_CLASSES: dict[str, tuple[Any, Any]] = {
    "t5": (T5Config, T5ForConditionalGeneration),
    "mt5": (MT5Config, MT5ForConditionalGeneration),
    "umt5": (UMT5Config, UMT5ForConditionalGeneration),
}


def random_model(kind: str, seed: int, **settings: Any) -> PreTrainedModel:
    """Make a model of weights wide enough that every one of them changes what is translated.

    Hugging Face begins with weights so small that a model of them says the same for every source.
    """
    torch.manual_seed(seed)
    config_class, model_class = (CLASSES | T5_CLASSES)[kind]
    model: PreTrainedModel = model_class(config_class(**settings)).eval()
    if kind in T5_CLASSES and not settings.get("tie_word_embeddings", True):
        # The class ties them whatever it is told, and believes the weights when they are loaded.
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if name.endswith("relative_attention_bias.weight"):
                tensor.normal_(std=2.0)
            elif "norm" in name:
                tensor += 0.3 * torch.randn_like(tensor)
            elif name == "final_logits_bias":
                tensor.normal_(std=0.5)
            elif "embed_positions" not in name or kind in ("mbart", "bart"):
                is_table = "embed" in name or "shared" in name or "lm_head" in name
                gain = (
                    4.0 if "encoder_attn" in name else 2.0 if "EncDecAttention" in name else 1.0
                )  # the source matters as much as what was said before
                tensor.normal_(std=1.0 if is_table else gain * tensor.shape[-1] ** -0.5)
    return model


def save(model: PreTrainedModel, folder: Path, **generation: Any) -> Path:
    """Save a model, with what its generation_config.json shall say beside the ids of config.json."""
    config = model.config
    model.generation_config = GenerationConfig(
        decoder_start_token_id=config.decoder_start_token_id,
        eos_token_id=config.eos_token_id,
        pad_token_id=config.pad_token_id,
        **generation,
    )
    model.save_pretrained(folder)
    return folder


def imported(folder: Path, out: Path) -> tuple[Transformer, Sequence[str]]:
    """Import the weights of a folder by way of the files of a checkpoint; returns the model and the warnings."""
    from dragoman.language_marks import Languages

    source = Source.open(folder)
    family = family_of(source)
    warnings = list(family.check(source))
    weights = open_weights(source.weight_files())
    network = family.network(source, weights, 3)
    write_checkpoint(out, network, weights, Texts({}, 3, Languages.pair("en", "de")), {})
    model = Transformer(network.config).eval()
    from safetensors.torch import load_file

    load_weights(model, load_file(out / WEIGHTS), out)
    return model, [*warnings, *network.warnings]


def translate(
    model: PreTrainedModel,
    sources: Sequence[Sequence[int]],
    tokens: int,
    starts: Sequence[Sequence[int]] | None = None,
) -> list[list[int]]:
    """Translate a batch with Hugging Face's `generate`, greedily.

    Args:
        model: in evaluation mode.
        sources: ids.
        tokens: of a translation at most.
        starts: what each row's translation begins with; what the model says if None.

    Returns:
        The ids of each translation, without those of `starts`, up to its end.
    """
    config = model.config
    # The cache of a T5 has as many layers as its encoder: too few for a deeper decoder.
    use_cache = getattr(config, "num_decoder_layers", 0) <= config.num_hidden_layers
    source: Tensor = pad(sources, config.pad_token_id)
    mask = torch.zeros_like(source)
    for row, ids in enumerate(sources):
        mask[row, : len(ids)] = 1
    given: dict[str, Any] = {}
    if starts is not None:
        # Without the first of them, the model's own start id would be put before all others.
        given = {"decoder_input_ids": torch.tensor(starts), "decoder_start_token_id": [row[0] for row in starts]}
    output = model.generate(
        input_ids=source,
        attention_mask=mask,
        num_beams=1,
        do_sample=False,
        max_new_tokens=tokens,
        forced_eos_token_id=None,
        use_cache=use_cache,
        **given,
    )
    begin = 1 if starts is None else len(starts[0])
    rows: list[list[int]] = output[:, begin:].tolist()
    end = config.eos_token_id
    return [row[: row.index(end)] if end in row else row for row in rows]


def agree(
    model: PreTrainedModel, source: Sequence[int], starts: Sequence[int], one: Sequence[int], other: Sequence[int]
) -> bool:
    """Tell whether two translations are the same up to a place where the model finds both tokens as good.

    Logits of random models may differ by less than sums in another order do, such as those of a padded batch.

    Args:
        starts: ids that both begin with, which they do not hold.
    """
    end = model.config.eos_token_id
    pairs = list(zip([*one, end], [*other, end], strict=False))
    place = next((place for place, (first, second) in enumerate(pairs) if first != second), None)
    if place is None:
        return True
    with torch.no_grad():
        given = torch.tensor([[*starts, *one[:place]]])
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=given).logits[0, -1]
    first, second = logits[list(pairs[place])]
    return bool((first - second).abs() < 1e-4 * logits.abs().max())
