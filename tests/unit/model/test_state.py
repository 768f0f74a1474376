from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from dragoman.errors import DataError
from model.checkpoint import weights
from model.optim import Optimizers
from model.state import Progress, RunFolder
from model.transformer import Transformer

Build = Callable[..., Transformer]
OPTIONS = {"seed": 1, "steps": 100}


class Run:
    """A model that trains on noise, and its folder."""

    def __init__(self, build: Build, folder: Path, keep: int = 3) -> None:
        self.model = build()
        self.optimizers = Optimizers(self.model, rate=2e-3, adam_rate=1e-3, weight_decay=0.1)
        self.folder = RunFolder(folder, keep)
        self.progress = Progress()

    def train(self, steps: int) -> None:
        for _ in range(steps):
            ids = torch.randint(17, (2, 5))
            self.model(ids, torch.tensor([5, 3]), ids).square().mean().backward()
            self.optimizers.step(1e-3)
            self.progress.step += 1

    def save(self) -> None:
        self.folder.save(self.model, self.optimizers, self.progress, OPTIONS)

    def load(self) -> Progress:
        self.folder.check(OPTIONS)
        return self.folder.load(self.model, self.optimizers)

    def same_weights(self, other: "Run") -> bool:
        mine, others = weights(self.model), weights(other.model)
        return all(torch.equal(mine[name], others[name]) for name in mine)


def test_a_loaded_state_goes_on_bitwise(build: Build, tmp_path: Path) -> None:
    run, resumed = Run(build, tmp_path), Run(build, tmp_path)
    torch.manual_seed(5)
    run.train(2)
    run.progress.curve.append((2, 1.5))
    run.save()
    run.train(2)
    torch.manual_seed(77)
    resumed.progress = resumed.load()
    assert resumed.progress.step == 2
    assert [tuple(point) for point in resumed.progress.curve] == [(2, 1.5)]
    resumed.train(2)
    assert run.same_weights(resumed)


def test_progress_is_kept_whole(build: Build, tmp_path: Path) -> None:
    run = Run(build, tmp_path)
    run.train(1)
    run.progress = Progress(1, 2, 3, 4, 5, 6.5, 7, 8.5, 9, [(1, 0.5)], [(1, 12.25)])
    run.save()
    loaded = run.load()
    assert asdict(loaded) | {"curve": [], "evaluations": []} == asdict(run.progress) | {"curve": [], "evaluations": []}
    assert [tuple(point) for point in loaded.evaluations] == [(1, 12.25)]


def test_newest_snapshots_are_kept(build: Build, tmp_path: Path) -> None:
    run = Run(build, tmp_path, keep=2)
    saved = []
    for _ in range(4):
        run.train(1)
        run.save()
        saved.append({name: tensor.clone() for name, tensor in weights(run.model).items()})
    assert sorted(file.name for file in (tmp_path / "snapshots").iterdir()) == [
        "00000003.safetensors",
        "00000004.safetensors",
    ]
    for snapshot, expected in zip(run.folder.snapshots(4), saved[2:], strict=True):
        assert all(torch.equal(snapshot[name], expected[name]) for name in expected)


def test_snapshots_from_beyond_the_state_do_not_count(build: Build, tmp_path: Path) -> None:
    """A kill between the snapshot and the state leaves one of a step that the resumed run has yet to reach."""
    run = Run(build, tmp_path, keep=2)
    for _ in range(3):
        run.train(1)
        run.save()
    steps = [snapshot["encoder_norm.bias"] for snapshot in run.folder.snapshots(2)]
    assert len(steps) == 1


def test_an_interrupted_save_leaves_what_the_old_state_needs(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(build, tmp_path, keep=2)
    for _ in range(2):
        run.train(1)
        run.save()
    old = weights(run.model)["encoder_norm.bias"].clone()
    run.train(1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("model.replacing.os.rename", killed)
        with pytest.raises(KeyboardInterrupt):
            run.save()
    assert run.load().step == 2
    assert torch.equal(weights(run.model)["encoder_norm.bias"], old)
    assert len(run.folder.snapshots(2)) == 2


def test_a_kill_between_the_two_renames(build: Build, tmp_path: Path) -> None:
    run = Run(build, tmp_path)
    run.train(1)
    run.save()
    (tmp_path / "state").rename(tmp_path / "state.old")
    (tmp_path / "state.partial").mkdir()
    assert run.load().step == 1
    run.train(1)
    run.save()
    assert run.load().step == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["snapshots", "state"]


def test_nothing_to_resume_from(build: Build, tmp_path: Path) -> None:
    run = Run(build, tmp_path)
    with pytest.raises(DataError, match="no state to resume from"):
        run.folder.check(OPTIONS)


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "progress.json", "options.json"])
def test_a_damaged_state(build: Build, tmp_path: Path, name: str) -> None:
    run = Run(build, tmp_path)
    run.train(1)
    run.save()
    (tmp_path / "state" / name).write_bytes((tmp_path / "state" / name).read_bytes()[:7])
    with pytest.raises(DataError, match=rf"{name}: cannot read: "):
        run.load()


def test_a_run_may_go_on_longer_but_not_as_another_run(build: Build, tmp_path: Path) -> None:
    run = Run(build, tmp_path)
    run.save()
    run.folder.check(OPTIONS | {"steps": 200})
    with pytest.raises(DataError, match="seed was 1, is 2"):
        run.folder.check(OPTIONS | {"seed": 2})
