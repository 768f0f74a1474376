"""How fast training is, and where an update spends its time: prints a table.

    python -m bench.training --bf16 --compile

Random batches of the shape of `dragoman train`'s, of sentences of several lengths. Tokens are those of both sides, as
the training counts them. A row holds the fastest of its rounds: the machine may do other things beside.
"""

import sys
import time
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from bench.arguments import add_json, count, counts, make_parser, share
from bench.files import write_json
from bench.machine import machine
from dragoman.exit_codes import EXIT_OK
from model.loss import Loss
from model.optim import Optimizers
from model.options import TrainingOptions
from model.transformer import Transformer

_LENGTHS: Final = "12,24,40"
_FIRST_PIECE: Final = 4  # those before it have a role


@dataclass(frozen=True)
class Row:
    """What an update of a batch of like sentences takes.

    Attributes:
        length: tokens of a sentence, on each side.
        forward_s: the loss, with its own gradients.
        backward_s: all other gradients.
        optimizer_s: clipping, and the step.
        tokens_per_s: of both sides.
        products_share: of the time that the products take at the speed of the fastest of them.
    """

    length: int
    forward_s: float
    backward_s: float
    optimizer_s: float
    tokens_per_s: float
    products_share: float


class Update:
    """A model in training, without data."""

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


def measure(options: TrainingOptions, lengths: list[int], rounds: int) -> list[Row]:
    """Measure updates of batches of each length, in turns."""
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
    return [Row(length, *t, tokens / sum(t), floor / sum(t)) for length, t in best.items()]


def main(argv: list[str]) -> int:
    """Measure and print; returns the exit code."""
    defaults = TrainingOptions()
    parser = make_parser("python -m bench.training", __doc__)
    parser.add_argument("--lengths", type=counts, default=_LENGTHS, metavar="N,N", help="tokens of a sentence")
    parser.add_argument("--rounds", type=count, default=5, metavar="N", help="updates of each length")
    parser.add_argument("--vocabulary-size", type=count, default=16000, metavar="N", help="pieces")
    parser.add_argument("--batch-tokens", type=count, default=6144, metavar="N", help="of each side")
    parser.add_argument("--dropout", type=share, default=defaults.dropout, metavar="X", help="dropout rate")
    parser.add_argument("--bf16", action="store_true", help="as of `dragoman train`")
    parser.add_argument("--compile", action="store_true", help="likewise")
    add_json(parser)
    arguments = parser.parse_args(argv)
    names = ("vocabulary_size", "batch_tokens", "dropout", "bf16", "compile")
    options = TrainingOptions(**{name: getattr(arguments, name) for name in names})
    rows = measure(options, arguments.lengths, arguments.rounds)
    print("  length   forward  backward  optimizer   tokens/s   share of products")
    for row in rows:
        print(
            f"{row.length:>8} {row.forward_s:>7.3f} s {row.backward_s:>7.3f} s {row.optimizer_s:>8.3f} s "
            f"{row.tokens_per_s:>10,.0f} {row.products_share:>19.0%}"
        )
    if arguments.json:
        write_json(
            arguments.json, {"machine": machine(), "options": options.model_dump(), "rows": list(map(vars, rows))}
        )
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
