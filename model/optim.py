"""The optimizers, and the learning rate as a pure function of the step."""

from dataclasses import dataclass
from typing import Final

import torch
from torch import nn

from model.muon import Muon

# Far below the gradients of weights that a batch uses. With less, AdamW moves weights by the rate however small their
# gradients are: embeddings of rare pieces drift until the model no longer writes them (arXiv:1907.12009).
_EPSILON: Final = 1e-6


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up, constant, linear decay to zero over the last part (arXiv:2405.18392).

    Since the rate depends only on the step and the total, training can be resumed with another total.
    """

    peak: float
    warmup_steps: int
    decay_steps: int
    total_steps: int

    def rate(self, step: int) -> float:
        """Compute the learning rate of a step, counted from 0."""
        warm = (step + 1) / max(1, self.warmup_steps)
        left = (self.total_steps - step) / max(1, self.decay_steps)
        return self.peak * max(0.0, min(1.0, warm, left))


class Optimizers:
    """Muon for the matrices of the layers, and AdamW for all other weights, as one optimizer.

    Muon (Jordan, 2024) orthogonalizes the momentum of each weight matrix; it is not used for embeddings, biases and
    norms. Both follow the same schedule, AdamW with a proportional rate.
    """

    def __init__(self, model: nn.Module, *, rate: float, adam_rate: float, weight_decay: float) -> None:
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        self._matrices = [(n, p) for n, p in named if p.dim() == 2 and not _is_table(n)]
        self._others = [(n, p) for n, p in named if p.dim() != 2 or _is_table(n)]
        self._muon = Muon([p for _, p in self._matrices], rate=rate, weight_decay=weight_decay)
        self._adam = torch.optim.AdamW(
            [p for _, p in self._others],
            lr=adam_rate,
            betas=(0.9, 0.98),
            eps=_EPSILON,
            weight_decay=0.0,
            fused=True,
        )
        self._adam_share = adam_rate / rate

    def step(self, rate: float) -> None:
        """Apply the gradients at a learning rate, and clear them."""
        optimizers: tuple[tuple[torch.optim.Optimizer, float], ...] = (
            (self._muon, 1.0),
            (self._adam, self._adam_share),
        )
        for optimizer, share in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * share
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> dict[str, torch.Tensor]:
        """List every state tensor as `weight/slot`, ready for safetensors."""
        return {
            f"{name}/{slot}": value
            for optimizer, named in ((self._muon, self._matrices), (self._adam, self._others))
            for name, parameter in named
            for slot, value in optimizer.state[parameter].items()
        }

    def load_state(self, tensors: dict[str, torch.Tensor]) -> None:
        """Restore the result of `state`."""
        for optimizer, named in ((self._muon, self._matrices), (self._adam, self._others)):
            for name, parameter in named:
                optimizer.state[parameter] = {
                    key.split("/")[1]: value.to(parameter.device)
                    for key, value in tensors.items()
                    if key.split("/")[0] == name
                }


def _is_table(name: str) -> bool:
    return "embedding" in name or "positions" in name or name.startswith("output.")
