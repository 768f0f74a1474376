"""The recurrence that can replace self-attention in the decoder: its state does not grow with the target."""

from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from model.config import TransformerConfig

_ELEMENTS_OF_A_THREAD: Final = 32767  # PyTorch divides larger tensors among threads


class SimpleRecurrence(nn.Module):
    """The simpler simple recurrent unit, SSRU (Kim et al., 2019, aclanthology.org/D19-5632).

    c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W), with f_t = sigmoid(x_t W_f + b_f) and c_0 = 0; the output is relu(c_t).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        # The first half computes the forget gate, the second half the input.
        self.gate_input = nn.Linear(config.d_model, 2 * config.d_model, bias=config.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Run over whole sequences, from a zero state: [batch, length, d_model]; the shape does not change."""
        keep, admitted = self._gates(states)
        return scan(keep, admitted).relu().to(states.dtype)  # type: ignore[no-any-return]

    def step(self, states: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Advance by one position per row.

        Args:
            states: [batch, 1, d_model].
            state: float32 [batch, d_model], c of the previous position; zeros at first.

        Returns:
            The output [batch, 1, d_model], and the new state.
        """
        keep, admitted = self._gates(states.squeeze(1))
        state = keep * state + admitted
        return state.relu().to(states.dtype)[:, None], state

    def _gates(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Compute f and (1 - f) * (x W) in float32, since states are summed over many positions."""
        gate, linear = self.gate_input(states).float().chunk(2, dim=-1)
        keep = gate.sigmoid()
        return keep, (1 - keep) * linear


@torch.library.custom_op("dragoman::scan", mutates_args=())
def scan(keep: Tensor, admitted: Tensor) -> Tensor:
    """Compute all c_t = keep_t * c_(t-1) + admitted_t, from zeros: [batch, length, d_model] each.

    The positions are computed one after another, with so few rows that one thread computes them: several threads would
    wait for each other. An operator is one node of a compiled graph; a loop would be compiled for each length.
    """
    states = torch.empty(admitted.shape, dtype=admitted.dtype, device=admitted.device)
    rows = max(1, _ELEMENTS_OF_A_THREAD // admitted.shape[2])
    for kept, new, result in zip(*(torch.split(part, rows) for part in (keep, admitted, states)), strict=True):
        state = result[:, 0].copy_(new[:, 0])
        for position in range(1, admitted.shape[1]):
            state = torch.addcmul(new[:, position], kept[:, position], state, out=result[:, position])
    return states


@scan.register_fake
def _shape(keep: Tensor, admitted: Tensor) -> Tensor:
    return torch.empty(admitted.shape, dtype=admitted.dtype, device=admitted.device)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _gradients(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """Compute g_t = gradient_t + keep_(t+1) * g_(t+1), the same scan from the end; that of keep is g_t * c_(t-1)."""
    keep, states = context.saved_tensors
    later = F.pad(keep[:, 1:], (0, 0, 0, 1))
    admitted = scan(later.flip(1), gradient.flip(1)).flip(1)
    return F.pad(admitted[:, 1:] * states[:, :-1], (0, 0, 1, 0)), admitted


scan.register_autograd(_gradients, setup_context=_save)
