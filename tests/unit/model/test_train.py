"""The training loop in this process; tests/integration/test_training.py kills a real one."""

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from dragoman.bundle import sha256
from dragoman.errors import DataError
from model import train
from model.checkpoint import load_checkpoint
from model.corpus import Corpus
from model.evaluate import translate
from model.optim import Schedule
from model.options import TrainingOptions
from model.prefetch import pools
from model.stream import Stream
from model.train import Trainer

TINY: dict[str, Any] = {
    "vocabulary_size": 350,
    "d_model": 32,
    "heads": 2,
    "d_ff": 48,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "batch_tokens": 400,
    "steps": 12,
    "warmup_steps": 3,
    "decay_steps": 4,
    "save_steps": 3,
    "evaluate_steps": 6,
    "average": 2,
    "device": "cpu",
}
DICTIONARY = {
    "the": "der",
    "train": "Zug",
    "station": "Bahnhof",
    "bakery": "Bäckerei",
    "opens": "öffnet",
    "closes": "schließt",
    "at": "um",
    "six": "sechs",
    "today": "heute",
    "and": "und",
}
# What is drawn anew each epoch.
DRAWN: dict[str, Any] = {
    "candidates": 3,
    "weight": {"train": 1.5},
    "augment": {"typos": 0.3, "join": 0.2, "copies": 0.3},
}
NewTrainer = Callable[..., Trainer]


def write(file: Path, pairs: list[tuple[str, str]]) -> Path:
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return file


def files_in(folder: Path, corpus: Corpus) -> tuple[Path, Path]:
    pairs = list(zip(corpus.sources, corpus.targets, strict=True))
    return write(folder / "train.tsv", pairs[:90]), write(folder / "dev.tsv", pairs[90:98])


def trainer_of(files: tuple[Path, Path]) -> NewTrainer:
    def trainer(out: Path, *, resume: bool = False, init: Path | None = None, **options: Any) -> Trainer:
        return Trainer([files[0]], files[1], out, TrainingOptions(**TINY | options), resume=resume, init=init)

    return trainer


@pytest.fixture
def files(corpus: Corpus, tmp_path: Path) -> tuple[Path, Path]:
    return files_in(tmp_path, corpus)


@contextmanager
def light_runs() -> Iterator[None]:
    """Runs make their batches in this process and draw no learning curve: both take longer than a few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "plot_learning_curve", lambda progress, file: None)
        patch.setattr(train, "prefetch", lambda plan, epoch, first, _: nullcontext(pools(plan, epoch, first)))
        yield


@pytest.fixture
def trainer(files: tuple[Path, Path]) -> Iterator[NewTrainer]:
    with light_runs():
        yield trainer_of(files)


@pytest.fixture
def whole_trainer(files: tuple[Path, Path]) -> NewTrainer:
    """Of runs that leave nothing out."""
    return trainer_of(files)


@pytest.fixture(scope="module")
def run_once(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Callable[[bool], Path]:
    """Gives what a whole run leaves, with all that is drawn anew each epoch or nothing of it."""

    @cache
    def run_once(draws: bool) -> Path:
        folder = tmp_path_factory.mktemp("whole")
        with light_runs():
            trainer_of(files_in(folder, corpus))(folder / "out", **(DRAWN if draws else {})).run()
        return folder / "out"

    return run_once


@pytest.fixture
def finished(run_once: Callable[[bool], Path], tmp_path: Path) -> Path:
    """What a whole run has left, to go on with."""
    return shutil.copytree(run_once(False), tmp_path / "finished")


def final_weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "state" / "model.safetensors")


def assert_same_end(out: Path, other: Path) -> None:
    """The same weights bit by bit, the same progress and the same checkpoint."""
    for name in ("model.safetensors", "optimizer.safetensors"):
        mine, others = load_file(out / "state" / name), load_file(other / "state" / name)
        assert mine.keys() == others.keys()
        assert not [key for key in mine if not torch.equal(mine[key], others[key])]
    progress = [json.loads((folder / "state" / "progress.json").read_text()) for folder in (out, other)]
    reports = [json.loads((folder / "checkpoint" / "training.json").read_text()) for folder in (out, other)]
    for run in progress + reports:
        del run["seconds"]
    assert progress[0] == progress[1]
    assert reports[0] == reports[1]
    checkpoints = [(folder / "checkpoint" / "model.safetensors").read_bytes() for folder in (out, other)]
    assert checkpoints[0] == checkpoints[1]


def sentence(words: random.Random) -> tuple[str, str]:
    chosen = words.choices(list(DICTIONARY), k=words.randint(4, 7))
    return " ".join(chosen), " ".join(DICTIONARY[word] for word in chosen)


def test_really_learns(tmp_path: Path) -> None:
    """A dictionary of ten words, applied in order to sentences that were not seen."""
    words = random.Random(1)
    pairs = [sentence(words) for _ in range(1020)]
    train_file, dev_file = write(tmp_path / "train.tsv", pairs[:1000]), write(tmp_path / "dev.tsv", pairs[1000:])
    assert not {source for source, _ in pairs[:1000]} >= {source for source, _ in pairs[1000:]}
    plan = {"steps": 250, "warmup_steps": 20, "decay_steps": 100, "save_steps": 10, "evaluate_steps": 250}
    rates = {"rate": 2e-2, "adam_rate": 5e-3, "dropout": 0.0, "weight_decay": 0.0}
    options = TrainingOptions(**TINY | plan | rates | {"vocabulary_size": 306, "batch_tokens": 600, "d_ff": 64})
    progress = Trainer([train_file], dev_file, tmp_path / "out", options, resume=False).run()
    assert progress.best_bleu > 90
    model, tokenizer = load_checkpoint(tmp_path / "out" / "checkpoint")
    assert translate(model, tokenizer, ["the bakery opens at six today"]) == ["der Bäckerei öffnet um sechs heute"]


def test_what_a_run_leaves(whole_trainer: NewTrainer, tmp_path: Path) -> None:
    out = tmp_path / "out"
    progress = whole_trainer(out).run()
    assert [step for step, _ in progress.evaluations] == [6, 12]
    assert [step for step, _ in progress.curve] == list(range(1, 13))
    assert (out / "learning-curve.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads((out / "checkpoint" / "training.json").read_text())
    assert report["dev_scores"]["bleu"] == progress.best_bleu
    assert [each["pairs"] for each in report["train"]] == [90]
    assert report["dev"]["pairs"] == 8
    assert report["train"][0]["broken_lines"] == report["too_long"] == 0
    assert report["options"]["seed"] == 1
    assert report["tokens"] > 0
    model, _ = load_checkpoint(out / "checkpoint")
    assert report["parameters"] == sum(parameter.numel() for parameter in model.parameters())


def test_another_seed_is_another_run(trainer: NewTrainer, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trainer(tmp_path / name, seed=seed, steps=3).run()
    first, same, other = (final_weights(tmp_path / name) for name in "abc")
    assert all(torch.equal(first[key], same[key]) for key in first)
    assert not torch.equal(first["encoder_norm.weight"], other["encoder_norm.weight"])


class Killed(BaseException):
    """Stands for a kill: nothing after it is written."""


@pytest.mark.parametrize("when", ["_update", "_save", "_evaluate"])
@pytest.mark.parametrize("calls", [1, 2])
def test_resumed_anywhere_it_ends_alike(
    trainer: NewTrainer, run_once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, calls: int
) -> None:
    """Killed as a step, a save or an evaluation begins and right behind it; with all that is drawn anew each epoch."""
    out = tmp_path / "out"
    # Resumed from the last snapshot, a run comes to the same call at once; before these updates there is none.
    for moment, count in (("before", calls), ("after", calls if when == "_update" else 1)):
        kill(monkeypatch, when, count, moment)
        with pytest.raises(Killed):
            trainer(out, resume=out.exists(), **DRAWN).run()
        monkeypatch.undo()
    trainer(out, resume=True, **DRAWN).run()
    assert_same_end(run_once(True), out)


def kill(monkeypatch: pytest.MonkeyPatch, when: str, calls: int, moment: str) -> None:
    """Has the `calls`th call of a method end the run."""
    monkeypatch.setattr(Trainer, when, dying(getattr(Trainer, when), calls, moment))


def dying(method: Callable[..., Any], calls: int, moment: str) -> Callable[..., Any]:
    """The method, until its `calls`th call."""
    count = 0

    def call(self: Trainer, *arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == calls and moment == "before":
            raise Killed
        result = method(self, *arguments)
        if count == calls:
            raise Killed
        return result

    return call


def test_resumed_in_a_later_pool_and_epoch(
    trainer: NewTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool of 80 pairs and one of 10 make an epoch."""
    options = {"batch_tokens": 20, "steps": 100, "evaluate_steps": 100, "augment": {"typos": 0.5}}
    assert trainer(tmp_path / "whole", **options).run().epoch == 1
    out, saved = tmp_path / "out", 0
    for step in (30, 85, 95):
        kill(monkeypatch, "_update", step - saved, "after")
        with pytest.raises(Killed):
            trainer(out, resume=saved > 0, **options).run()
        monkeypatch.undo()
        saved = json.loads((out / "state" / "progress.json").read_text())["step"]
        assert step - TINY["save_steps"] <= saved < step
    trainer(out, resume=True, **options).run()
    assert_same_end(tmp_path / "whole", out)


def test_long_pairs_are_counted_once(trainer: NewTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"max_tokens": 60, "steps": 30, "evaluate_steps": 30}
    kill(monkeypatch, "_update", 5, "after")
    with pytest.raises(Killed):
        trainer(tmp_path / "out", **options).run()
    monkeypatch.undo()
    run = trainer(tmp_path / "out", resume=True, **options)
    progress = run.run()
    assert progress.epoch > 1
    assert 0 < progress.too_long == Stream(*run.plan).pool(0, 0).too_long


def test_a_run_of_before_there_were_pools_goes_on(trainer: NewTrainer, finished: Path) -> None:
    progress = json.loads((finished / "state" / "progress.json").read_text())
    del progress["pool"], progress["too_long"]
    (finished / "state" / "progress.json").write_text(json.dumps(progress | {"batch": 5000}))
    shutil.rmtree(finished / "corpus")
    assert trainer(finished, resume=True, steps=15).run().step == 15


def test_sources_and_weights_are_recorded(files: tuple[Path, Path], tmp_path: Path) -> None:
    tagged = tmp_path / "tagged.tsv"
    lines = files[0].read_text().splitlines()
    tagged.write_text("".join(f"{line}\t{'ui' if n % 3 else 'doc-mt'}\n" for n, line in enumerate(lines)))
    made: dict[str, Any] = {"weight": {"*-mt": 0.0, "ui": 2.5}, "augment": {"lower": 0.1}, "filter": True}
    options = TrainingOptions(**TINY | made)
    Trainer([files[0], tagged], files[1], tmp_path / "out", options, resume=False).run()
    report = json.loads((tmp_path / "out" / "checkpoint" / "training.json").read_text())
    assert [each["file"] for each in report["train"]] == ["train.tsv", "tagged.tsv"]
    pairs = [each["pairs"] for each in report["train"]]
    assert [sum(each["filtered"].values()) for each in report["train"]] == [90 - count for count in pairs]
    weights = report["weights"]
    assert [(each["pattern"], each["weight"], each["tags"]) for each in weights] == [
        ("*-mt", 0, 1),
        ("ui", 2.5, 1),
        ("", 1, 1),
    ]
    assert weights[0]["pairs"] + weights[1]["pairs"] == pairs[1]
    assert weights[2]["pairs"] == pairs[0]
    assert {name: report["options"][name] for name in made} == made


def test_the_curve_is_drawn_while_the_run_goes_on(
    whole_trainer: NewTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill(monkeypatch, "_update", 8, "after")
    with pytest.raises(Killed):
        whole_trainer(tmp_path / "out").run()
    assert (tmp_path / "out" / "learning-curve.png").read_bytes().startswith(b"\x89PNG")


def test_a_resumed_run_has_the_same_corpus_and_weights_in_the_same_order(
    trainer: NewTrainer, files: tuple[Path, Path], tmp_path: Path
) -> None:
    weights = {"t*": 2.0, "*n": 1.0}
    trainer(tmp_path / "out", weight=weights).run()
    with pytest.raises(DataError, match="cannot resume with other options: weight was"):
        trainer(tmp_path / "out", resume=True, weight=dict(reversed(weights.items())))
    with files[0].open("a") as file:
        file.write("one more\tnoch eins\n")
    with pytest.raises(DataError, match=r"train\.tsv: is not what the run began with"):
        trainer(tmp_path / "out", resume=True, weight=weights)


def test_a_resumed_run_has_the_same_dev_pairs(trainer: NewTrainer, files: tuple[Path, Path], finished: Path) -> None:
    with files[1].open("a") as file:
        file.write("one more\tnoch eins\n")
    with pytest.raises(DataError, match=r"cannot resume with other options: dev was [0-9a-f]{64}, is [0-9a-f]{64}$"):
        trainer(finished, resume=True)


def test_resumed_after_the_end_it_does_nothing(trainer: NewTrainer, finished: Path, run_once) -> None:
    progress = trainer(finished, resume=True).run()
    assert [step for step, _ in progress.evaluations] == [6, 12]
    assert_same_end(finished, run_once(False))


def test_resumed_for_more_steps(trainer: NewTrainer, finished: Path) -> None:
    assert trainer(finished, resume=True, steps=15).run().step == 15


def test_resumed_for_more_steps_it_knows_the_last_evaluation(trainer: NewTrainer, tmp_path: Path) -> None:
    """It was at the end of the steps planned then, where none is planned now."""
    trainer(tmp_path / "out", steps=5, evaluate_steps=3).run()
    progress = trainer(tmp_path / "out", resume=True, steps=7, evaluate_steps=3).run()
    assert [step for step, _ in progress.evaluations] == [3, 5, 6, 7]


def test_resumed_for_no_more_steps_before_there_was_a_snapshot(
    trainer: NewTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = Schedule.rate

    def interrupted(self: Schedule, step: int) -> float:
        if step == 1:  # the second
            os.kill(os.getpid(), signal.SIGINT)
        return rate(self, step)

    monkeypatch.setattr(Schedule, "rate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trainer(tmp_path / "out").run()
    progress = trainer(tmp_path / "out", resume=True, steps=2).run()
    assert [step for step, _ in progress.evaluations] == [2]
    load_checkpoint(tmp_path / "out" / "checkpoint")


def test_early_stop(trainer: NewTrainer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At a rate of nearly nothing BLEU stays what it is: the weights kept are the last."""
    progress = trainer(
        tmp_path / "out", steps=60, save_steps=2, evaluate_steps=2, patience=3, rate=1e-12, adam_rate=1e-12
    ).run()
    assert progress.step == 8
    assert progress.stale_evaluations == 3
    said = "step 8: the run ends here, dev BLEU has not risen for 3 evaluations (--patience)\n"
    assert capsys.readouterr().out.endswith(said)
    assert json.loads((tmp_path / "out" / "checkpoint" / "training.json").read_text())["steps"] == 8


def test_an_evaluation_between_two_saves(trainer: NewTrainer, tmp_path: Path) -> None:
    progress = trainer(tmp_path / "out", steps=6, save_steps=5, evaluate_steps=2).run()
    assert [step for step, _ in progress.evaluations] == [2, 4, 6]


def test_vocabularies_apart(trainer: NewTrainer, tmp_path: Path) -> None:
    trainer(tmp_path / "out", steps=3, joint=False, vocabulary_size=340).run()
    assert not load_checkpoint(tmp_path / "out" / "checkpoint")[0].config.share_embeddings


def test_the_decoder_may_be_a_recurrence(trainer: NewTrainer, tmp_path: Path) -> None:
    trainer(tmp_path / "out", decoder="ssru").run()
    model, _ = load_checkpoint(tmp_path / "out" / "checkpoint")
    assert model.config.decoder_cell == "ssru"
    assert "decoder.0.recurrence.gate_input.weight" in final_weights(tmp_path / "out")


def test_a_run_of_before_an_option_was_there_goes_on(trainer: NewTrainer, finished: Path) -> None:
    file = finished / "state" / "options.json"
    before = json.loads(file.read_text())
    del before["decoder"], before["init"], before["dev"]
    file.write_text(json.dumps(before))
    assert trainer(finished, resume=True, steps=15).run().step == 15
    file.write_text(json.dumps(before))
    with pytest.raises(DataError, match="decoder was attention, is ssru"):
        trainer(finished, resume=True, decoder="ssru")


def test_a_corpus_too_small_for_the_vocabulary(files: tuple[Path, Path], tmp_path: Path) -> None:
    said: list[str] = []

    def run(asked: int, *, resume: bool) -> int:
        options = TrainingOptions(**TINY | {"vocabulary_size": asked})
        return Trainer([files[0]], files[1], tmp_path / "out", options, resume=resume, report=said.append).run().step

    assert run(5000, resume=False) == 12
    size = load_checkpoint(tmp_path / "out" / "checkpoint")[0].config.source_vocabulary_size
    assert 350 < size < 5000
    assert f"the corpus is too small for 5,000 pieces (--vocabulary-size): the tokenizer has {size:,}" in said
    report = json.loads((tmp_path / "out" / "checkpoint" / "training.json").read_text())
    assert report["options"]["vocabulary_size"] == size
    assert run(5000, resume=True) == 12
    with pytest.raises(DataError, match="vocabulary_size was 5000, is 400"):
        run(400, resume=True)


def test_broken_lines_are_reported(
    trainer: NewTrainer, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = files[0].read_text().splitlines(keepends=True)
    files[0].write_text("".join([*lines[:40], "no tab\n", *lines[40:]]))
    [recorded] = trainer(tmp_path / "out").provenance["train"]
    assert capsys.readouterr().out == f"{files[0]}: 1 broken lines left out, at line 41\n"
    assert (recorded["pairs"], recorded["broken_lines"]) == (90, 1)


def test_starts_from_a_checkpoint(trainer: NewTrainer, finished: Path, tmp_path: Path) -> None:
    init = finished / "checkpoint"
    second = trainer(tmp_path / "second", init=init, seed=2)
    expected, _ = load_checkpoint(init)
    actual = dict(second.model.named_parameters())
    assert all(torch.equal(parameter, actual[name]) for name, parameter in expected.named_parameters())
    second.run()
    report = json.loads((tmp_path / "second" / "checkpoint" / "training.json").read_text())
    assert report["init"] == {"sha256": sha256(init / "model.safetensors")}
    tokenizers = [tmp_path / run / "checkpoint" / "tokenizer.model" for run in ("finished", "second")]
    assert tokenizers[0].read_bytes() == tokenizers[1].read_bytes()


def test_resumed_from_another_checkpoint_or_none(trainer: NewTrainer, finished: Path, tmp_path: Path) -> None:
    out, init = tmp_path / "second", finished / "checkpoint"
    trainer(out, init=init, steps=3).run()
    with pytest.raises(DataError, match=r"other options: init was [0-9a-f]{64}, is None"):
        trainer(out, resume=True, steps=3)
    with pytest.raises(DataError, match=r"other options: init was [0-9a-f]{64}, is [0-9a-f]{64}"):
        trainer(out, resume=True, init=out / "checkpoint", steps=3)
    with pytest.raises(DataError, match=r"other options: init was None, is [0-9a-f]{64}"):
        trainer(finished, resume=True, init=init)
    trainer(out, resume=True, init=init, steps=6).run()
    report = json.loads((out / "checkpoint" / "training.json").read_text())
    assert report["init"] == {"sha256": sha256(init / "model.safetensors")}
    assert "init" not in report["options"]


def test_refuses_to_start_from_another_architecture(trainer: NewTrainer, finished: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot start from another architecture: norm is 'pre' there, 'post' here"):
        trainer(tmp_path / "second", init=finished / "checkpoint", norm="post")
    assert not (tmp_path / "second").exists()


def test_vocabularies_of_two_sizes_are_not_joint(trainer: NewTrainer, tmp_path: Path) -> None:
    options = {"vocabulary_size": 5000, "joint": False, "steps": 3}
    trainer(tmp_path / "out", **options).run()
    config = load_checkpoint(tmp_path / "out" / "checkpoint")[0].config
    assert config.source_vocabulary_size != config.target_vocabulary_size
    with pytest.raises(DataError, match="joint was False, is True"):
        trainer(tmp_path / "out", resume=True, **options | {"joint": True})
    with pytest.raises(DataError, match="share_embeddings is False there, True here"):
        trainer(tmp_path / "second", init=tmp_path / "out" / "checkpoint")


def test_refuses_a_folder_with_something_in_it(trainer: NewTrainer, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("precious")
    with pytest.raises(DataError, match="is not empty; --resume goes on with the run in it"):
        trainer(tmp_path / "out")


@pytest.mark.parametrize("resume", [False, True])
def test_a_corpus_of_the_users_in_the_folder_stays(
    trainer: NewTrainer, files: tuple[Path, Path], tmp_path: Path, resume: bool
) -> None:
    mine = tmp_path / "out" / "corpus" / "en-de.tsv"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(files[0].read_bytes())
    if resume:
        (tmp_path / "out" / "tokenizer").mkdir()
    with pytest.raises(DataError, match="is not the corpus of a run" if resume else "is not empty"):
        trainer(tmp_path / "out", resume=resume)
    assert mine.read_bytes() == files[0].read_bytes()


@pytest.mark.parametrize(
    ("left", "resume"), [(["corpus"], False), (["corpus"], True), (["corpus", "tokenizer"], False)]
)
def test_begins_anew_where_a_run_ended_before_it_saved_a_step(
    trainer: NewTrainer, finished: Path, tmp_path: Path, left: list[str], resume: bool
) -> None:
    for name in left:
        shutil.copytree(finished / name, tmp_path / "out" / name)
    (tmp_path / "out" / "corpus.partial").mkdir()
    trainer(tmp_path / "out", resume=resume).run()
    assert_same_end(finished, tmp_path / "out")


def test_begins_anew_without_the_tokenizer_of_other_options(
    trainer: NewTrainer, finished: Path, tmp_path: Path
) -> None:
    for name in ("corpus", "tokenizer"):
        shutil.copytree(finished / name, tmp_path / "out" / name)
    trainer(tmp_path / "out", joint=False, vocabulary_size=340)
    assert sorted(file.name for file in (tmp_path / "out" / "tokenizer").iterdir()) == ["source.model", "target.model"]


def test_refuses_a_folder_with_a_tokenizer_alone(trainer: NewTrainer, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "tokenizer", tmp_path / "out" / "tokenizer")
    with pytest.raises(DataError, match="is not empty"):
        trainer(tmp_path / "out")


def test_refuses_to_resume_what_never_began(trainer: NewTrainer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to resume"):
        trainer(tmp_path / "out", resume=True)


def test_resumes_a_run_killed_before_its_first_save(trainer: NewTrainer, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "tokenizer", tmp_path / "out" / "tokenizer")
    (tmp_path / "out" / "tokenizer" / "tokenizer.model").write_bytes(b"half")
    trainer(tmp_path / "out", resume=True).run()
    assert_same_end(finished, tmp_path / "out")


def test_contradictory_options_leave_no_trace(trainer: NewTrainer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="multiple of heads"):
        trainer(tmp_path / "out", heads=3)
    assert not (tmp_path / "out").exists()


def test_refuses_a_dev_sentence_beyond_the_positions(
    trainer: NewTrainer, files: tuple[Path, Path], tmp_path: Path
) -> None:
    whole = files[1].read_text()
    with files[1].open("a") as file:
        file.write("a " * 600 + "\tein\n")
    with pytest.raises(DataError, match=r"dev\.tsv: line 9 has \d+ tokens, the model 512 positions"):
        trainer(tmp_path / "out")
    files[1].write_text(whole)
    trainer(tmp_path / "out")


def test_weights_that_draw_no_pair(trainer: NewTrainer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^--weight: no pair is drawn for the first epoch; of 90 pairs, .* 9e-05 on"):
        trainer(tmp_path / "out", weight={"*": 1e-6})
    assert not (tmp_path / "out").exists()


def test_a_training_that_diverges_ends_and_its_weights_are_not_saved(trainer: NewTrainer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"diverged: the loss of step 2 is nan, .* lower --rate"):
        trainer(tmp_path / "out", rate=1e38, adam_rate=1e38, save_steps=2).run()
    assert not (tmp_path / "out" / "state").exists()


def test_refuses_a_corpus_of_long_pairs_alone(trainer: NewTrainer, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no pair is shorter than 2 tokens"):
        trainer(tmp_path / "out", max_tokens=2).run()
