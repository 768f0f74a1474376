"""Muon with products in the device's fast type, and all matrices of one shape together."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

_MOMENTUM: Final = 0.95
_COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
_ITERATIONS: Final = 5
_EPSILON: Final = 1e-7


class Muon(Optimizer):
    """Orthogonalizes the momentum of each weight matrix (Jordan, 2024), with the step sizes of Liu et al., 2025.

    `torch.optim.Muon` computes the same, but always with bfloat16 products and one matrix after another. A processor
    without instructions for bfloat16 takes 20 times as long for these as for float32.

    Args:
        parameters: the matrices.
        rate: the learning rate, of the usual size for AdamW.
        weight_decay: the weight decay of all matrices.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], *, rate: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": rate, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Apply the gradients."""
        assert closure is None
        for group in self.param_groups:
            of_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    of_shape[parameter.shape].append(parameter)
            for shape, parameters in of_shape.items():
                updates = orthogonalized(torch.stack([self._moved(each) for each in parameters]))
                rate = group["lr"] * 0.2 * math.sqrt(max(shape))
                for parameter, update in zip(parameters, updates.to(parameters[0].dtype), strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"])
                    parameter.add_(update, alpha=-rate)

    def _moved(self, parameter: nn.Parameter) -> Tensor:
        """Add a gradient to its momentum, and return the update by Nesterov's rule."""
        assert parameter.grad is not None
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum_buffer"]
        momentum.lerp_(parameter.grad, 1 - _MOMENTUM)
        return parameter.grad.lerp(momentum, _MOMENTUM)


def orthogonalized(matrices: Tensor) -> Tensor:
    """Bring the singular values of matrices close to 1 by five Newton-Schulz iterations of the fifth order.

    Args:
        matrices: [count, rows, columns].

    Returns:
        The result of the same shape, in the type of the products.
    """
    a, b, c = _COEFFICIENTS
    is_high = matrices.shape[1] > matrices.shape[2]
    found = matrices.to(_product_type(matrices.device))
    found = found.mT if is_high else found
    found = found / found.norm(dim=(1, 2), keepdim=True).clamp(min=_EPSILON)
    for _ in range(_ITERATIONS):
        gram = found @ found.mT
        found = torch.baddbmm(found, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.mT if is_high else found


def _product_type(device: torch.device) -> torch.dtype:
    """Choose bfloat16 if the device has instructions for it, else float32."""
    if device.type == "cuda":
        return torch.bfloat16
    has = torch.cpu.get_capabilities()
    return torch.bfloat16 if has.get("amx_bf16") or has.get("avx512_bf16") else torch.float32
