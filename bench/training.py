"""How fast training is, and where an update spends its time: a row for each length.

    dragoman bench training --bf16 --compile

Random batches of the shape of `dragoman train`'s, of sentences of several lengths. Tokens are those of both sides, as
the training counts them. A row holds the fastest of its rounds: the machine may do other things beside.
"""

import argparse
import time
from typing import Final, get_args

import torch
from torch import Tensor

from bench.arguments import count, counts, share
from bench.frame import Figures
from dragoman.bundle import DecoderCell
from model.loss import Loss
from model.optim import Optimizers
from model.options import TrainingOptions
from model.transformer import Transformer

_LENGTHS: Final = "12,24,40"
_FIRST_PIECE: Final = 4  # those before it have a role


class Update:
    def __init__(self, options: TrainingOptions) -> None:
        torch.manual_seed(options.seed)
        self.options = options
        self.model = Transformer(options.transformer((options.vocabulary_size,) * 2), options.dropout)
        self.model.train()
        self._loss = Loss(self.model, smoothing=options.label_smoothing, compiled=options.compile)
        self._optimizers = Optimizers(
            self.model, rate=options.rate, adam_rate=options.adam_rate, weight_decay=options.weight_decay
        )

    def batch(self, length: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Draw a batch of sentences of one length on both sides, as `Loss` takes it."""
        rows = self.options.batch_tokens // length
        ids = [torch.randint(_FIRST_PIECE, self.options.vocabulary_size, (rows, length)) for _ in range(3)]
        return ids[0], torch.full((rows,), length), ids[1], ids[2]

    def run(self, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[float, float, float]:
        """Make an update; returns the seconds of forward, backward and optimizer."""
        times = [time.perf_counter()]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
            loss = self._loss(*batch)
        times.append(time.perf_counter())
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self._optimizers.step(self.options.rate)
        times.append(time.perf_counter())
        return times[1] - times[0], times[2] - times[1], times[3] - times[2]

    def operations(self) -> float:
        """Count the operations of an update's products but for those of attention: two for each multiply-add."""
        tables = {"source_embedding.weight", "target_embedding.weight"}
        matrices = [p for n, p in self.model.named_parameters() if p.dim() == 2 and n not in tables]
        weights = sum(matrix.numel() for matrix in matrices)
        if self.model.config.tie_output:
            weights += self.model.output.weight.numel()
        return 3 * 2.0 * weights * self.options.batch_tokens


def peak(kind: torch.dtype, seconds: float = 1.0) -> float:
    """Measure the operations a second of a large product."""
    left, right = torch.randn(4096, 1024, dtype=kind), torch.randn(1024, 1024, dtype=kind)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - start)
    return 2.0 * 4096 * 1024 * 1024 / best


def rows(options: TrainingOptions, lengths: list[int], rounds: int) -> list[Figures]:
    """Measure updates of batches of each length, in turns.

    Returns:
        A row for each length. `products_share` is the share of the time that the products would take at the speed of
        the fastest of them.
    """
    update = Update(options)
    batches = {length: update.batch(length) for length in lengths}
    best: dict[int, tuple[float, float, float]] = {}
    for number in range(rounds + 2):
        for length, batch in batches.items():
            times = update.run(batch)
            if number >= 2:  # the first ones compile
                best[length] = min(best.get(length, times), times, key=sum)
    floor = update.operations() / peak(torch.bfloat16 if options.bf16 else torch.float32)
    tokens = 2 * options.batch_tokens
    names = ("forward_s", "backward_s", "optimizer_s")
    return [
        {
            "length": length,
            **dict(zip(names, times, strict=True)),
            "tokens_per_s": tokens / sum(times),
            "products_share": floor / sum(times),
        }
        for length, times in best.items()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add, defaults = parser.add_argument, TrainingOptions()
    add("--lengths", type=counts, default=_LENGTHS, metavar="N,N", help="tokens of a sentence")
    add("--rounds", type=count, default=5, metavar="N", help="updates of each length")
    add("--vocabulary-size", type=count, default=16000, metavar="N", help="pieces")
    add("--batch-tokens", type=count, default=6144, metavar="N", help="of each side")
    add("--dropout", type=share, default=defaults.dropout, metavar="X", help="dropout rate")
    add("--decoder", choices=get_args(DecoderCell), default=defaults.decoder, help="as of `dragoman train`")
    add("--bf16", action="store_true", help="likewise")
    add("--compile", action="store_true", help="likewise")


def measure(arguments: argparse.Namespace) -> Figures:
    names = ("vocabulary_size", "batch_tokens", "dropout", "decoder", "bf16", "compile")
    options = TrainingOptions(**{name: getattr(arguments, name) for name in names})
    return {"rows": rows(options, arguments.lengths, arguments.rounds), "options": options.model_dump_json()}
