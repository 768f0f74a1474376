"""The training loop: from batches to a checkpoint; after a kill at any moment, it can be resumed."""

import math
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import torch
from tqdm import tqdm

from dragoman.bundle import sha256
from dragoman.errors import DataError
from dragoman.tokenizer import Tokenizer
from model.batches import SpecialIds, Tokenized, bucket, collate
from model.checkpoint import average, copy_tokenizer, load_checkpoint, load_weights, save_checkpoint, weights
from model.corpus import Corpus, broken_note, read_corpus
from model.data import Batch
from model.evaluate import check_lengths, translate
from model.layout import WEIGHTS
from model.loss import Loss
from model.optim import Optimizers, Schedule
from model.options import TrainingOptions
from model.plot import plot_learning_curve
from model.prefetch import StreamPlan, prefetch
from model.scores import Scores, score
from model.state import Progress, RunFolder
from model.store import is_store, store
from model.stream import Pairs, StreamOptions, pool_size
from model.subwords import train_tokenizer
from model.transformer import Transformer

Report = Callable[[str], None]

# More pairs would only slow down the training of a tokenizer.
MOST_TOKENIZER_PAIRS = 250_000


class Trainer:
    """One training run in a folder: `checkpoint/` (the best so far), `corpus/`, `tokenizer/`, `state/`, `snapshots/`.

    Other processes make the batches, see `prefetch`.
    """

    def __init__(
        self,
        train_files: Sequence[Path],
        dev_file: Path,
        out: Path,
        options: TrainingOptions,
        *,
        resume: bool,
        init: Path | None = None,
        report: Report = lambda message: None,
    ) -> None:
        """Read the corpora, train or load the tokenizer, build or load the model.

        Args:
            train_files: source<TAB>target lines, optionally with <TAB>tag.
            dev_file: in the format of `train_files`; its scores choose the weights to keep.
            out: the folder of the run.
            options: the training options.
            resume: whether to continue the run in `out`.
            init: a checkpoint with the tokenizer and weights to start a new run from.
            report: gets a message before each slow step.

        Raises:
            DataError: the device does not exist, a corpus is unusable, `out` does not match `resume`, or `init` does
                not match `options`.
            BundleError: `init` is no checkpoint.
        """
        if not resume and _has_begun(out):
            raise DataError(f"{out} is not empty; --resume goes on with the run in it")
        if resume and not any((out / name).exists() for name in ("tokenizer", "corpus", "corpus.partial")):
            raise DataError(f"{out}: nothing to resume")
        options.transformer((options.vocabulary_size,) * 2)  # finds contradictions before anything is written
        self.out, self.options, self.device = out, options, torch_device(options)
        self.folder = RunFolder(out, options.average)
        resume = self.folder.exists()  # a run that was killed before its first save starts again
        start = initial_model(init, options) if init and not resume else None
        self.init = init and sha256(init / WEIGHTS)
        report(f"reading {', '.join(map(str, train_files))} and {dev_file}")
        self.dev = read_reporting(dev_file)
        self.dev_hash = sha256(dev_file)
        if resume:
            self.folder.check(self._options())
        pairs, files = open_pairs(train_files, out, options, anew=not resume)
        if not resume:  # an earlier start with other options may have left one
            shutil.rmtree(out / "tokenizer", ignore_errors=True)
        if init and start:
            copy_tokenizer(init, out / "tokenizer")
        elif not resume:
            new_tokenizer(pairs.sample(MOST_TOKENIZER_PAIRS), out / "tokenizer", options, report)
        self.tokenizer = Tokenizer.open(out / "tokenizer")
        torch.manual_seed(options.seed)
        config = options.transformer(self.tokenizer.vocabulary_sizes)
        check_lengths(dev_file, self.dev, self.tokenizer, config)
        self.model = Transformer(config, options.dropout).to(self.device)
        if init and start:
            load_weights(self.model, weights(start), init)
        ids = SpecialIds(config.pad_id, config.start_id, config.eos_id)
        self.plan = StreamPlan(out / "corpus", out / "tokenizer", ids, stream_options(options))
        self.epoch_pools = pairs.mixture.expected / pool_size(options.batch_tokens)
        self.dev_batches = self._dev_batches(ids)
        self.optimizers = Optimizers(
            self.model, rate=options.rate, adam_rate=options.adam_rate, weight_decay=options.weight_decay
        )
        self.schedule = Schedule(options.rate, options.warmup_steps, options.decay_steps, options.steps)
        self.progress = self.folder.load(self.model, self.optimizers) if resume else Progress()
        self.provenance = {
            "train": files,
            "weights": pairs.mixture.report(),
            "dev": {"file": dev_file.name, "sha256": self.dev_hash, "pairs": len(self.dev)},
            "init": self.init and {"sha256": self.init},
            "options": options.model_dump(mode="json") | {"vocabulary_size": max(self.tokenizer.vocabulary_sizes)},
            "versions": {"torch": torch.__version__, "python": platform.python_version()},
        }
        self.loss = Loss(self.model, smoothing=options.label_smoothing, compiled=options.compile)

    def run(self) -> Progress:
        """Train until the last step or until dev BLEU has not risen for `patience` evaluations.

        Ctrl-C takes effect between two steps, a second Ctrl-C at once.

        Raises:
            DataError: the training has diverged, or no pair is short enough.
            KeyboardInterrupt: after Ctrl-C; the state is saved.
        """
        options, progress = self.options, self.progress
        if self._evaluation_is_due():  # the run was killed after saving this step, before the end of its evaluation
            self._evaluate()
        bar = tqdm(total=options.steps, initial=progress.step, unit="step", mininterval=1, smoothing=0.05)
        with bar, _ctrl_c_heard() as interrupted, closing(self._batches()) as batches:
            for batch in batches:
                if progress.step >= options.steps or progress.stale_evaluations >= options.patience:
                    break
                self._step(batch, bar)
                if interrupted():
                    # No snapshot: a resumed run must average the same weights as an uninterrupted run.
                    self._save(snapshot=False)
                    raise KeyboardInterrupt
        if progress.step < options.steps:
            stale = f"dev BLEU has not risen for {progress.stale_evaluations} evaluations"
            tqdm.write(f"step {progress.step}: the run ends here, {stale} (--patience)")
        return progress

    def _step(self, batch: Batch, bar: "tqdm[NoReturn]") -> None:
        """Make one update, and the saves and evaluations that are due after it."""
        progress = self.progress
        loss = self._update(batch)
        progress.curve.append((progress.step, round(loss, 4)))
        rate = progress.tokens / progress.seconds
        bleu = f"BLEU {progress.best_bleu:.2f}" if progress.evaluations else "no BLEU yet"
        bar.set_postfix_str(f"loss {loss:.3f}, {rate:,.0f} tokens/s, {bleu}", refresh=False)
        bar.update()
        due = self._evaluation_is_due()
        if due or progress.step % self.options.save_steps == 0:
            self._save()
        if due:
            self._evaluate()

    def _batches(self) -> Generator[Batch]:
        """Yield batches without end, from the position of the run; the position is updated with each batch.

        Raises:
            DataError: an epoch has no batches.
        """
        progress = self.progress
        first = progress.epoch
        with prefetch(self.plan, progress.epoch, progress.pool, batch_processes(self.device)) as pools:
            for epoch, number, pool in pools:
                if (epoch, number) != (progress.epoch, progress.pool):
                    progress.epoch, progress.pool, progress.batch = epoch, number, 0
                if epoch > first and not progress.step:
                    raise DataError(f"no pair is shorter than {self.options.max_tokens} tokens (--max-tokens)")
                if not progress.batch and not epoch:  # of the same pairs, later epochs would count them again
                    progress.too_long += pool.too_long
                while progress.batch < len(pool.batches):
                    progress.batch += 1
                    yield Batch.of(pool.batches[progress.batch - 1])

    def _update(self, batch: Batch) -> float:
        """Make one optimizer step; returns the loss.

        Raises:
            DataError: loss or gradient is no finite number, and now the weights are none.
        """
        start = time.monotonic()
        self.model.train()
        bf16 = self.options.bf16 or self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=bf16):
            loss = self.loss(*(tensor.to(self.device) for tensor in batch))
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip_norm)
        self.optimizers.step(self.schedule.rate(self.progress.step))
        self.progress.step += 1
        self.progress.tokens += int(batch.source_lengths.sum()) + int(
            (batch.target_out != self.model.config.pad_id).sum()
        )
        value = float(loss.detach())
        if not math.isfinite(value) or not math.isfinite(norm):
            what = f"the loss of step {self.progress.step} is {value}, the norm of its gradient {float(norm)}"
            raise DataError(f"the training has diverged: {what}; begin again with a lower --rate and --adam-rate")
        self.progress.seconds += time.monotonic() - start
        return value

    def _evaluation_is_due(self) -> bool:
        """Tell whether an evaluation is due at this step and has not been made."""
        step, evaluations = self.progress.step, self.progress.evaluations
        planned = step > 0 and (step == self.options.steps or step % self.options.evaluate_steps == 0)
        return planned and (not evaluations or evaluations[-1][0] < step)

    def _save(self, *, snapshot: bool = True) -> None:
        self.folder.save(self.model, self.optimizers, self.progress, self._options(), snapshot=snapshot)

    def _options(self) -> dict[str, Any]:
        """List what a resumed run is asked for again: the options, the hash of dev and that of its first checkpoint."""
        return self.options.model_dump(mode="json") | {"init": self.init, "dev": self.dev_hash}

    def _evaluate(self) -> None:
        """Score the average of the newest snapshots on dev; save it if it is the best so far. Draw the curve."""
        averaged = Transformer(self.model.config).to(self.device).eval()
        # There is no snapshot where Ctrl-C came before the first, and the resumed run has no more steps to make.
        snapshots = self.folder.snapshots(self.progress.step) or [weights(self.model)]
        load_weights(averaged, average(snapshots), self.out)
        scores = score(translate(averaged, self.tokenizer, self.dev.sources), self.dev.targets)
        self.progress.evaluations.append((self.progress.step, scores.bleu))
        if self.dev_batches:
            self.progress.dev_losses.append((self.progress.step, round(self._dev_loss(averaged), 4)))
        tqdm.write(f"step {self.progress.step}: dev BLEU {scores.bleu:.2f}, chrF {scores.chrf:.2f}")
        best = self.progress.best_bleu
        self.progress.stale_evaluations = 0 if scores.bleu > best else self.progress.stale_evaluations + 1
        if scores.bleu >= best:  # of equally good weights, those that were trained longest
            self.progress.best_bleu = scores.bleu
            save_checkpoint(self.out / "checkpoint", averaged, self.out / "tokenizer", self._report(scores), self.dev)
        self._save(snapshot=False)  # else a run resumed with other --steps would not know how good the checkpoint is
        plot_learning_curve(self.progress, self.out / "learning-curve.png")

    def _dev_batches(self, ids: SpecialIds) -> list[Batch]:
        """Tokenize the dev pairs, without those that are too long."""
        sides = zip(self.dev.sources, self.dev.targets, strict=True)
        pairs = [Tokenized(self.tokenizer.encode(s), self.tokenizer.encode_target(t)) for s, t in sides]
        short = [pair for pair in pairs if max(map(len, pair)) < self.options.max_tokens]
        return [Batch.of(collate(each, ids)) for each in bucket(short, self.options.batch_tokens)]

    @torch.no_grad()
    def _dev_loss(self, model: Transformer) -> float:
        """Compute the loss on dev as in training, but without dropout, in nats per token."""
        loss = Loss(model, smoothing=self.options.label_smoothing)
        total, tokens = 0.0, 0
        for batch in self.dev_batches:
            count = int((batch.target_out != model.config.pad_id).sum())
            total += float(loss(*(tensor.to(self.device) for tensor in batch))) * count
            tokens += count
        return total / tokens

    def _report(self, scores: Scores) -> dict[str, Any]:
        return self.provenance | {
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "steps": self.progress.step,
            "epochs": round(self.progress.epoch + min(1, self.progress.pool / self.epoch_pools), 2),
            "too_long": self.progress.too_long,
            "seconds": round(self.progress.seconds),
            "tokens": self.progress.tokens,
            "device": str(self.device),
            "dev_scores": asdict(scores),
        }


@contextmanager
def _ctrl_c_heard() -> Iterator[Callable[[], bool]]:
    """Make Ctrl-C set a flag instead of interrupting the work; a second Ctrl-C interrupts."""
    count = 0

    def hear(number: int, frame: object) -> None:
        nonlocal count
        count += 1
        signal.signal(signal.SIGINT, previous)

    previous = signal.signal(signal.SIGINT, hear)
    try:
        yield lambda: count > 0
    finally:
        signal.signal(signal.SIGINT, previous)


def torch_device(options: TrainingOptions) -> torch.device:
    """Choose the device for these options on this machine.

    Raises:
        DataError: the device does not exist.
    """
    available = torch.cuda.is_available()
    if options.device == "cuda" and not available:
        raise DataError("device cuda: torch finds no GPU here; --device auto or --device cpu trains without one")
    return torch.device("cuda" if available and options.device != "cpu" else "cpu")


def batch_processes(device: torch.device) -> int:
    """Choose the number of processes that make batches: one with a CPU that trains, all other cores with a GPU."""
    return max(1, len(os.sched_getaffinity(0)) - 1) if device.type == "cuda" else 1


def _has_begun(out: Path) -> bool:
    """Tell whether a folder has anything but corpus and tokenizer of a run that ended before it saved a step."""
    names = {entry.name for entry in out.iterdir()} if out.exists() else set()
    left = {"corpus.partial"} | ({"corpus"} if is_store(out / "corpus") else set())
    if names & left:  # no run makes its tokenizer first: one alone is the user's
        left.add("tokenizer")
    return not names <= left


def open_pairs(
    files: Sequence[Path], out: Path, options: TrainingOptions, *, anew: bool
) -> tuple[Pairs, list[dict[str, Any]]]:
    """Store the corpora in the folder of a run, or use the stored ones.

    Args:
        files: the files of pairs.
        out: the folder of the run.
        options: the options of the run.
        anew: whether a stored corpus is from a run that never began.

    Returns:
        The pairs, and a record of each file, for training.json.

    Raises:
        DataError: a file is unusable or differs from the stored one; the weights do not match the corpus; or no run
            made the folder `corpus`.
    """
    folder = out / "corpus"
    if anew:
        if folder.exists() and not is_store(folder):
            raise DataError(f"{folder}: is not the corpus of a run, and in the place of one")
        shutil.rmtree(folder, ignore_errors=True)
    try:
        found = store(files, folder, filters=options.filter)
        pairs = Pairs(found, stream_options(options))
        if anew and not pairs.count(0):
            raise DataError(
                f"--weight: no pair is drawn for the first epoch; of {len(found):,} pairs, the weights draw "
                f"{pairs.mixture.expected:.2g} on average"
            )
        return pairs, found.record["files"]
    except BaseException:
        if anew:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                out.rmdir()
        raise


def stream_options(options: TrainingOptions) -> StreamOptions:
    """Choose the options that determine the batches."""
    return StreamOptions(
        options.seed, options.weight, options.augment, options.candidates, options.max_tokens, options.batch_tokens
    )


def new_tokenizer(corpus: Corpus, folder: Path, options: TrainingOptions, report: Report) -> None:
    """Train the tokenizer of a run, and report if it has fewer pieces than requested.

    Raises:
        DataError: see `train_tokenizer`.
    """
    asked = options.vocabulary_size
    report(f"training a tokenizer on {len(corpus):,} pairs")
    sizes = train_tokenizer(corpus, folder, vocabulary_size=asked, joint=options.joint)
    if min(sizes) < asked:
        had = " and ".join(f"{size:,}" for size in sizes)
        report(f"the corpus is too small for {asked:,} pieces (--vocabulary-size): the tokenizer has {had}")


def initial_model(init: Path, options: TrainingOptions) -> Transformer:
    """Load the checkpoint from which a new run starts.

    Raises:
        BundleError: `init` is no checkpoint.
        DataError: the options need another architecture; the message names all differences.
    """
    model, _ = load_checkpoint(init)
    sizes = {"source_vocabulary_size", "target_vocabulary_size"}  # the tokenizer of the checkpoint decides them
    there = model.config.model_dump()
    here = options.transformer((options.vocabulary_size,) * 2).model_dump(exclude=sizes)
    faults = [f"{k} is {there[k]!r} there, {value!r} here" for k, value in here.items() if value != there[k]]
    if faults:
        raise DataError(f"{init}: cannot start from another architecture: {'; '.join(faults)}")
    return model


def read_reporting(file: Path) -> Corpus:
    """Read a corpus, and print the numbers of the skipped lines.

    Raises:
        DataError: see `read_corpus`.
    """
    corpus = read_corpus(file)
    if corpus.broken_lines:
        print(broken_note(file, corpus.broken_lines))
    return corpus
