"""The loss over the vocabulary, one block of rows at a time: the logits of a whole batch would not fit in a cache.

A GPU uses larger blocks: there each operator costs a launch, and the logits only have to fit in memory.
"""

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.autograd import Function

from model.transformer import Transformer

BLOCK_ROWS: Final = {"cpu": 512, "cuda": 8192}
_Softmax = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]


class Loss:
    """The training loss of a model."""

    def __init__(self, model: Transformer, *, smoothing: float, compiled: bool = False) -> None:
        """Compile the frequent operations, if requested; the first call then takes a minute."""
        self._model, self._smoothing = model, smoothing
        self._decode = torch.compile(_decode, dynamic=True) if compiled else _decode
        self._softmax = torch.compile(_softmax, dynamic=True) if compiled else _softmax

    def __call__(self, source: Tensor, source_lengths: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        """Compute the mean loss of a batch, see `model.data.Batch`: a float32 scalar."""
        hidden = self._decode(self._model, source, source_lengths, target_in)
        weight, pad_id = self._model.output.weight, self._model.config.pad_id
        loss: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
            hidden.flatten(0, 1), weight, target_out.flatten(), pad_id, self._smoothing, self._softmax
        )
        return loss


def _decode(model: Transformer, source: Tensor, source_lengths: Tensor, target_in: Tensor) -> Tensor:
    return model.decode(target_in, model.encode(source, source_lengths), source_lengths)


class _CrossEntropy(Function):
    """Label-smoothed cross entropy (arXiv:1512.00567) of the products of hidden states and the output weight.

    The gradients are computed at the same time, as in Liger's fused linear cross entropy (arXiv:2410.10989): a block's
    logits are computed once and, on a CPU, stay in the cache. Under autocast products have its type, sums are float32.
    """

    @staticmethod
    def forward(
        context: Any, hidden: Tensor, weight: Tensor, target: Tensor, pad_id: int, smoothing: float, softmax: _Softmax
    ) -> Tensor:
        """Compute the mean over all rows whose target is not `pad_id`.

        Args:
            context: the context of autograd.
            hidden: [rows, d_model].
            weight: [vocabulary, d_model].
            target: int64 [rows].
            pad_id: see above.
            smoothing: the share of the target's probability that is spread evenly over all pieces.
            softmax: `_softmax`, or its compiled version.
        """
        device = hidden.device.type
        kind = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else weight.dtype
        rows, output = hidden.to(kind), weight.to(kind)
        counts = (target != pad_id).float()
        shares = counts / counts.sum()
        rows_grad, weight_grad = torch.empty_like(rows), torch.zeros_like(weight, dtype=torch.float32)
        loss = torch.zeros((), device=hidden.device)
        size = BLOCK_ROWS[device]
        for start in range(0, len(rows), size):
            block = slice(start, start + size)
            part, logits_grad = softmax(rows[block] @ output.T, target[block], shares[block], smoothing)
            # Outside of `softmax`: scattered writes would prevent the vectorization of the rest.
            picked = torch.arange(len(logits_grad), device=target.device), target[block]
            logits_grad[picked] -= ((1 - smoothing) * shares[block]).to(kind)
            loss += part
            rows_grad[block] = logits_grad @ output
            weight_grad += logits_grad.T @ rows[block]
        context.save_for_backward(rows_grad.to(hidden.dtype), weight_grad.to(weight.dtype))
        return loss

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Give the gradients from `forward`, times the gradient of the loss."""
        rows_grad, weight_grad = context.saved_tensors
        return rows_grad * gradients[0], weight_grad * gradients[0], None, None, None, None


def _softmax(logits: Tensor, target: Tensor, shares: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """Compute the loss of logits [rows, vocabulary], and its gradient without the targets' own share."""
    values = logits.float()
    total = torch.logsumexp(values, dim=-1, keepdim=True)
    wanted = (1 - smoothing) * values.gather(1, target[:, None]) + smoothing * values.mean(dim=-1, keepdim=True)
    loss = ((total - wanted)[:, 0] * shares).sum()
    gradient = (torch.exp(values - total) - smoothing / values.shape[1]) * shares[:, None]
    return loss, gradient.to(logits.dtype)
