"""How fast training is, and where an update spends its time: a row for each length.

    dragoman bench training --bf16 --compile

Random batches of the shape of `dragoman train`'s, of sentences of several lengths. Tokens are those of both sides, as
the training counts them. A row holds the fastest of its rounds: the machine may do other things beside.
"""

import argparse
import time
from functools import partial
from itertools import pairwise
from typing import Final, get_args

import torch
from pydantic import ValidationError
from torch import Tensor

from bench.arguments import count, counts, share
from bench.frame import ArgumentError, Figures, in_turn
from dragoman.bundle import DecoderCell
from dragoman.invalid import describe
from model.loss import Loss
from model.optim import Optimizers
from model.options import TrainingOptions
from model.transformer import Transformer

_LENGTHS: Final = "12,24,40"
_COMPILING: Final = 2  # the first updates, which do not count
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

    def run(self, batch: tuple[Tensor, Tensor, Tensor, Tensor]) -> dict[str, float]:
        """Make an update; returns the seconds of its parts."""
        times = [time.perf_counter()]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
            loss = self._loss(*batch)
        times.append(time.perf_counter())
        loss.backward()  # type: ignore[no-untyped-call]
        times.append(time.perf_counter())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self._optimizers.step(self.options.rate)
        times.append(time.perf_counter())
        seconds = [after - before for before, after in pairwise(times)]
        return dict(zip(("forward_s", "backward_s", "optimizer_s"), seconds, strict=True))


def tokens_of(options: TrainingOptions, length: int) -> int:
    """Count the tokens of a batch of sentences of one length, on both sides."""
    return 2 * (options.batch_tokens // length) * length


def rows(options: TrainingOptions, lengths: list[int], rounds: int) -> list[Figures]:
    """Measure updates of batches of each length, in turn; a row for each length."""
    update = Update(options)
    found = in_turn([partial(update.run, update.batch(length)) for length in lengths], _COMPILING + rounds)
    best = [min(updates[_COMPILING:], key=lambda times: sum(times.values())) for updates in found]
    return [
        {"length": length, **times, "tokens_per_s": tokens_of(options, length) / sum(times.values())}
        for length, times in zip(lengths, best, strict=True)
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
    try:
        options = TrainingOptions(**{name: getattr(arguments, name) for name in names})
    except ValidationError as error:
        raise ArgumentError(f"argument {describe(error, flags=True)}") from error
    limit = min(options.transformer((options.vocabulary_size,) * 2).max_positions, options.batch_tokens)
    if (longest := max(arguments.lengths)) > limit:
        raise ArgumentError(f"argument --lengths: {longest} is above {limit}, the positions or --batch-tokens")
    return {"rows": rows(options, arguments.lengths, arguments.rounds), "options": options.model_dump_json()}
