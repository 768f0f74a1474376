"""The state of a training run on disk: a resumed run continues as if it had not been interrupted."""

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.errors import DataError
from model.checkpoint import load_weights, weights
from model.optim import Optimizers
from model.options import TrainingOptions
from model.replacing import replacing
from model.tensors import read_tensors, write_tensors
from model.transformer import Transformer

RNG = "rng"
CUDA_RNG = "cuda_rng"
# Options that a resumed run may change: duration, frequencies, device. All others must stay the same.
FREE_OPTIONS = {
    *("steps", "decay_steps", "save_steps", "evaluate_steps", "average", "patience"),
    *("bf16", "compile", "device"),
    *("source_language", "target_language"),
}


@dataclass
class Progress:
    """The progress of a run. `curve` and `dev_losses` hold step and loss, `evaluations` step and dev BLEU.

    `batch` batches of the pool `pool` of the epoch have been used; `too_long` counts the pairs left out so far.
    """

    step: int = 0
    epoch: int = 0
    pool: int = 0
    batch: int = 0
    too_long: int = 0
    seconds: float = 0.0
    tokens: int = 0
    best_bleu: float = -1.0
    stale_evaluations: int = 0
    curve: list[tuple[int, float]] = field(default_factory=list)
    evaluations: list[tuple[int, float]] = field(default_factory=list)
    dev_losses: list[tuple[int, float]] = field(default_factory=list)


class RunFolder:
    """`state/` (the newest complete state) and `snapshots/` (weights to average) of a run."""

    def __init__(self, folder: Path, keep_snapshots: int) -> None:
        self._state = folder / "state"
        self._snapshots = folder / "snapshots"
        self._keep = keep_snapshots

    def save(
        self,
        model: Transformer,
        optimizers: Optimizers,
        progress: Progress,
        options: dict[str, Any],
        *,
        snapshot: bool = True,
    ) -> None:
        """Write the new state beside the old one, then swap: a kill at any moment leaves one of the two.

        Args:
            model: the model to save.
            optimizers: the optimizers to save.
            progress: the progress of the run.
            options: the options of the run.
            snapshot: whether the weights are also saved for averaging.
        """
        with replacing(self._state) as partial:
            write_tensors(weights(model), partial / "model.safetensors")
            write_tensors(optimizers.state() | _random_states(), partial / "optimizer.safetensors")
            (partial / "progress.json").write_text(json.dumps(asdict(progress)))
            (partial / "options.json").write_text(json.dumps(options))
            if snapshot:
                self._snapshot(partial / "model.safetensors", progress.step)
        # Only now: until the swap, the old state still needs the oldest snapshot.
        for old in sorted(self._snapshots.glob("*.safetensors"))[: -self._keep]:
            old.unlink()

    def _snapshot(self, weights_file: Path, step: int) -> None:
        self._snapshots.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(weights_file, self._snapshots / f"{step:08d}.partial")
        (self._snapshots / f"{step:08d}.partial").rename(self._snapshots / f"{step:08d}.safetensors")

    def snapshots(self, up_to_step: int) -> list[dict[str, Tensor]]:
        """Read the weights of the newest snapshots, up to a step."""
        files = sorted(self._snapshots.glob("*.safetensors"))
        return [read_tensors(file) for file in files if int(file.stem) <= up_to_step][-self._keep :]

    def exists(self) -> bool:
        """Tell whether there is a state to resume from."""
        # A kill between the two renames of `replacing` leaves the complete old state under this name.
        old = self._state.with_name("state.old")
        if not self._state.exists() and old.exists():
            old.rename(self._state)
        return self._state.exists()

    def load(self, model: Transformer, optimizers: Optimizers) -> Progress:
        """Restore the newest state, including the random number generators; call `check` first.

        Raises:
            DataError: the state is damaged.
        """
        load_weights(model, read_tensors(self._state / "model.safetensors"), self._state)
        tensors = read_tensors(self._state / "optimizer.safetensors")
        torch.set_rng_state(tensors.pop(RNG))
        cuda_state = tensors.pop(CUDA_RNG, None)
        if cuda_state is not None and torch.cuda.is_available():
            torch.cuda.set_rng_state(cuda_state)
        optimizers.load_state(tensors)
        return Progress(**self._read("progress.json"))

    def _read(self, name: str) -> Any:
        file = self._state / name
        try:
            return json.loads(file.read_text())
        except ValueError as error:
            raise DataError(f"{file}: cannot read: {error}") from error

    def check(self, options: dict[str, Any]) -> None:
        """Check that a run can continue from the state.

        Raises:
            DataError: there is no state, it is damaged, or the run had other options; the message names all of these.
        """
        if not self.exists():
            raise DataError(f"{self._state}: no state to resume from")
        # An option that is newer than the run has its default; what else a run began with was not kept once.
        before = {name: option.default for name, option in TrainingOptions.model_fields.items()}
        before |= {name: value for name, value in options.items() if name not in before}
        before |= self._read("options.json")
        changed = [
            f"{name} was {before[name]}, is {value}"
            for name, value in options.items()
            if name not in FREE_OPTIONS and _in_order(before[name]) != _in_order(value)
        ]
        if changed:
            raise DataError(f"{self._state}: cannot resume with other options: {'; '.join(changed)}")


def _in_order(value: Any) -> Any:
    """Make mappings comparable with their order."""
    return list(value.items()) if isinstance(value, dict) else value


def _random_states() -> dict[str, Tensor]:
    states = {RNG: torch.get_rng_state()}
    return states | ({CUDA_RNG: torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})
