"""How large the inputs of each linear layer get, measured on real sentences."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from dragoman.tokenizer import Tokenizer
from model.data import Corpus, pad
from model.transformer import Transformer

# Of all values a layer reads, the share that its range covers; the few beyond it saturate, and in
# return all others are told apart more finely.
COVERED = 0.9999
BATCH = 125
# Of a mantissa from 0.5 to 1: eight in an octave.
_STEPS = 16

Ranges = Mapping[str, float]


@torch.inference_mode()
def calibrate(model: Transformer, tokenizer: Tokenizer, pairs: Corpus) -> Ranges:
    """Run every pair through the model.

    Args:
        model: in evaluation mode, fp32.
        tokenizer: of the model.
        pairs: what the model is used for.

    Returns:
        The range of the absolute input values of each linear layer, by the layer's name.
    """
    seen: dict[str, list[Tensor]] = {}
    run_pairs(model, tokenizer, pairs, lambda source, target: _recorded(model, source, target, seen))
    return {name: _range(torch.cat(values)) for name, values in seen.items()}


def run_pairs(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: Corpus,
    recorded: Callable[[Tensor, Tensor], AbstractContextManager[None]] | None = None,
) -> None:
    """Run every pair through a model, batch by batch.

    Args:
        model: in evaluation mode, fp32.
        tokenizer: of the model.
        pairs: source and target.
        recorded: is given which positions of the source and of the target, bool [batch, length], are no padding, and
            surrounds the run of the batch.
    """
    config = model.config
    for start in range(0, len(pairs), BATCH):
        sources = [[*tokenizer.encode(text), config.eos_id] for text in pairs.sources[start : start + BATCH]]
        targets = [[config.start_id, *tokenizer.encode_target(text)] for text in pairs.targets[start : start + BATCH]]
        source = pad(sources, config.pad_id)[:, : config.max_positions]
        target = pad(targets, config.pad_id)[:, : config.max_positions]
        lengths = torch.tensor([len(ids) for ids in sources]).clamp_max(source.shape[1])
        with recorded(source != config.pad_id, target != config.pad_id) if recorded else nullcontext():
            model(source, lengths, target)


@contextmanager
def _recorded(model: Transformer, source: Tensor, target: Tensor, seen: dict[str, list[Tensor]]) -> Iterator[None]:
    """Keep the absolute inputs of every linear layer, at positions that are no padding, while the block runs."""

    def hook(name: str, inputs: tuple[Tensor, ...]) -> None:
        reads_source = name.startswith("encoder.") or name.endswith("cross_attention.key_value")
        seen.setdefault(name, []).append(inputs[0][source if reads_source else target].abs().flatten())

    handles = [
        module.register_forward_pre_hook(lambda _, inputs, name=name: hook(name, inputs))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def steady(largest: Tensor) -> Tensor:
    """Round measured values up to the next of eight in an octave, that is by an eighth at most.

    Another processor adds up in another order and measures other last digits: they shall not make another bundle.
    Every operation here is exact.
    """
    mantissa, exponent = torch.frexp(largest)
    return torch.ldexp((mantissa * _STEPS).ceil() / _STEPS, exponent)


def _range(values: Tensor) -> float:
    return float(steady(values.kthvalue(max(1, int(COVERED * values.numel()))).values))
