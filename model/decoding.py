"""Greedy decoding in plain PyTorch: the reference for all other ways to run the model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from model.data import pad
from model.transformer import Transformer


@torch.inference_mode()
def greedy(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    *,
    max_target_tokens: int,
    start_ids: Sequence[Sequence[int]] | None = None,
) -> list[list[int]]:
    """Decode a batch, one token per step, until every row has ended.

    Args:
        model: in evaluation mode.
        sources: ids of each source, with the end-of-sentence id, none empty.
        max_target_tokens: the limit of a row's tokens, without `start_ids` and the end-of-sentence id.
        start_ids: the first ids of each row, the same number for each; None: the start id of the model.

    Returns:
        Target ids of each source, without start and end-of-sentence ids.
    """
    config = model.config
    device = model.output.weight.device
    source = pad(sources, config.pad_id).to(device)
    source_lengths = torch.tensor([len(ids) for ids in sources], dtype=torch.int32, device=device)
    memory = model.project_memory(model.encode(source, source_lengths))
    starts = torch.tensor(start_ids or [[config.start_id]] * len(sources), device=device)
    given = starts.shape[1]
    caches = model.new_caches(len(sources), given + max_target_tokens)
    ended = torch.zeros(len(sources), dtype=torch.bool, device=device)
    steps: list[Tensor] = []
    for step in range(given - 1 + max_target_tokens):
        if step < given:
            ids = starts[:, step]
        lengths = torch.full((len(sources),), step, dtype=torch.int32, device=device)
        logits, caches = model.step(ids, lengths, caches, memory, source_lengths)
        if step < given - 1:
            continue
        ids = logits.argmax(dim=-1)
        ended |= ids == config.eos_id
        steps.append(torch.where(ended, config.eos_id, ids))
        if ended.all():
            break
    rows: list[list[int]] = torch.stack(steps, dim=1).tolist()
    return [row[: row.index(config.eos_id)] if over else row for row, over in zip(rows, ended.tolist(), strict=True)]
