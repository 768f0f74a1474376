"""Each part on a CPU, with a tiny model."""

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.decoding import Graphs
from bench.gpu import floor, served, speed, steps
from bench.gpu import parts as gpu_parts
from bench.gpu.accuracy import parity, placement, real_sentences
from bench.gpu.memory import memory
from bench.gpu.models import checkpoint_folder, models, open_bundle
from bench.gpu.parts import Part
from bench.gpu.process import Function, Outcome
from bench.gpu.task import Setup, Task
from bench.peers.random_model import SHAPES
from bench.sentences import Sentences
from bench.server_process import Running, ServerError
from plugins.gpu.device import DeviceDecoder
from tests.synthetic import Synthetic
from tests.unit.bench.gpu import behaviours

SENTENCES = Sentences([[5, 6, 2], [9, 2], [7, 8, 9, 10, 2]], [12, 9, 11])


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "COPY_FLOATS", {"cpu": 2**16})
    monkeypatch.setattr(speed, "FEWEST_SENTENCES", 4)
    monkeypatch.setattr(speed, "SENTENCES_PER_SLOT", 2)
    monkeypatch.setattr(steps, "CAPACITY", 20)
    monkeypatch.setattr(steps, "_COMPANY_TOKENS", 4)


def test_steps_are_the_same_without_cuda_graphs(task: Task) -> None:
    figures = steps.graphs(task)
    assert figures["steps"] >= task.setup.steps
    assert figures["checks"] == {"the same tokens with CUDA graphs and without": True}


def test_sentences_come_and_go_up_to_the_end_of_the_caches(fp32: Synthetic) -> None:
    sentences = steps.coming_and_going(fp32.bundle.manifest, 12)
    assert sum(sentences.limits) >= 12 * steps.SLOTS
    assert max(sentences.limits) == steps.CAPACITY
    assert min(sentences.limits) < steps.CAPACITY


def test_without_capture_no_step_has_a_cuda_graph(fp32: Synthetic) -> None:
    decoder = Graphs.resident(fp32.bundle, "cpu", capture=False).decoder
    assert isinstance(decoder, DeviceDecoder)
    assert [next(decoder.cuda_graph_ids) for _ in range(3)] == [-1, -1, -1]


def test_nan_that_nobody_has_written_over_is_not_used(task: Task) -> None:
    assert steps.nan(task)["checks"] == {"numbers that nobody has written are never used": True}


def test_caches_hold_the_number_that_they_are_filled_with(fp32: Synthetic) -> None:
    filled = steps.Filled(Graphs.resident(fp32.bundle, "cpu").decoder, np.nan)
    table, _ = filled.new_step(fp32.bundle.manifest, 2)
    assert all(np.isnan(buffer.value.numpy()).all() for buffer in (*table.caches.values(), *table.memory.values()))


def test_logits_in_company_are_those_alone_on_a_cpu(task: Task) -> None:
    figures = steps.bits(task)
    assert [(row["slots"], row["different"], row["same_ids"]) for row in figures["rows"]] == [
        (1, 0, True),
        (2, 0, True),
    ]
    assert figures["rows"][0]["logits"] == 4 * 400
    assert figures["left_out"] is None


def test_logits_are_compared_number_by_number() -> None:
    found = steps.compare(np.array([[1.0, 2.0]]), np.array([[1.0, 2.5]]))
    assert found == {"logits": 2, "different": 1, "largest_difference": 0.5}


def test_placement_names_the_provider_and_counts_copies(task: Task) -> None:
    figures = placement(task)
    assert [row["graph"] for row in figures["rows"]] == ["encoder", "decoder", "place", "copy", "search"]
    assert all((row["first_provider"], row["copies"]) == ("CPUExecutionProvider", 0) for row in figures["rows"])
    assert all(figures["checks"].values())


def test_a_bundle_is_equal_to_itself(task: Task) -> None:
    figures = parity(task)
    assert (figures["sentences"], figures["equal_share"]) == (4, 1.0)
    assert figures["bleu_fp32_cpu"] == figures["bleu_fp16_cpu"]


def test_texts_that_are_too_long_lose_their_beginning(fp32: Synthetic) -> None:
    sentences = real_sentences(fp32.bundle, ["word " * 100])
    assert len(sentences.sources[0]) == fp32.bundle.manifest.max_source_tokens
    assert sentences.sources[0][-1] == fp32.bundle.manifest.eos_id


def test_slot_counts_that_say_most_come_first() -> None:
    assert speed.in_order_of_value(1024) == [256, 1, 64, 1024, 16, 512, 128, 32, 8, 4, 2]
    assert speed.in_order_of_value(4) == [1, 4, 2]


def test_sentences_come_again_until_there_are_enough() -> None:
    portion = speed.cycled(SENTENCES, slots=4)
    assert len(portion) == 8
    assert portion.sources == [*SENTENCES.sources, *SENTENCES.sources, *SENTENCES.sources[:2]]
    assert portion.limits[3] == SENTENCES.limits[0]


def test_speed_has_a_row_for_each_slot_count(task: Task) -> None:
    rows = speed.speed(task)["rows"]
    assert [row["slots"] for row in rows] == [1, 2]
    assert all(row["tokens_per_s"] > 0 and row["floor_ms"] > 0 and row["step_ms"] > 0 for row in rows)


def test_without_time_speed_names_what_is_left_out(task: Task) -> None:
    figures = speed.speed(replace(task, end_s=0.0))
    assert figures["rows"] == []
    assert figures["left_out"] == "slots 1, 2"


def test_models_are_made_and_the_peer_is_measured_beside_ours(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ctranslate2", reason='needs the extra "peers"')
    small = {
        **{"source_vocabulary_size": 300, "target_vocabulary_size": 300, "d_model": 32, "heads": 2, "d_ff": 48},
        **{"encoder_layers": 1, "decoder_layers": 1},
    }
    monkeypatch.setitem(SHAPES, "base", SHAPES["base"] | small)
    base = Task(replace(setup, device="cpu"), "base", time.monotonic() + 600.0, lambda figures: None)
    assert set(models(base)) == {"fp16", "ctranslate2"}
    speed.speed(base)
    rows = speed.peer(base)["rows"]
    assert [row["slots"] for row in rows] == [1, 2]
    assert all(row["times_the_peer"] > 0 for row in rows)


def test_bytes_of_a_step_follow_from_lengths(fp32: Synthetic) -> None:
    # Steps see 1, 2 own positions beside 3 of the source, then 1 beside 5.
    read = floor.step_bytes(fp32.bundle, [3, 5], [2, 1])
    positions = ((1 + 3) + (2 + 3) + (1 + 5)) / 3
    manifest = fp32.bundle.manifest
    assert read.row == pytest.approx(positions * manifest.decoder_layers * 2 * manifest.attention_width * 4)
    half = manifest.model_copy(update={"precision": "fp16"})
    assert floor.position_bytes(half) == floor.position_bytes(manifest) / 2


def test_of_a_table_of_embeddings_a_step_reads_a_few_rows(fp32: Synthetic) -> None:
    model, weights = fp32.model, floor.weight_bytes(fp32.bundle)
    # Keys and values of the source are the encoder's work.
    own = [
        parameter.numel()
        for name, parameter in model.named_parameters()
        if name.startswith("decoder") and "cross_attention.key_value" not in name
    ]
    assert weights == pytest.approx((sum(own) + model.output.weight.numel()) * 4, rel=0.03)
    assert model.target_embedding.weight.numel() * 4 > 0.1 * weights  # or the test would prove nothing


def test_floor_is_bytes_over_bandwidth() -> None:
    assert floor.StepBytes(weights=1000, row=10.0).least_ms(rows=100, bytes_per_s=1e6) == pytest.approx(2.0)


def test_copy_is_measured_on_the_device() -> None:
    assert floor.copy_bytes_per_s("cpu") > 0


def test_memory_is_sampled_on_the_way(task: Task) -> None:
    figures = memory(task)
    assert [row["segments"] for row in figures["rows"]] == list(range(2, 41, 2))
    assert figures["left_out"] is None
    assert figures["rows"][0]["mib"] > 0


def test_a_server_reloads_under_load_and_no_answer_changes(task: Task) -> None:
    figures = served.reload(task)
    assert figures["completed"] > 0
    assert figures["reloads"] > 0
    assert figures["verify_different"] == 0
    assert all(figures["checks"].values())


def test_a_reload_that_does_not_end_is_an_error(
    fp32: Synthetic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served, "_RELOAD_TIMEOUT_S", 0.0)
    monkeypatch.setattr(served, "_is_replaced", lambda *_: False)
    bundle = shutil.copytree(fp32.bundle.path, tmp_path / "bundle")
    with subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(1, print); input()"], stdin=-1
    ) as process:
        with pytest.raises(ServerError, match="reload 1 did not end"):
            served.replace(Running("", "", process, 0.0), bundle, 1)
        process.kill()


def test_a_random_model_is_made_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def write(folder: Path, *_: object) -> None:
        folder.mkdir(parents=True)
        made.append(folder)

    monkeypatch.setattr("bench.peers.random_model.write_checkpoint", write)
    large = replace(task, size="large")
    assert checkpoint_folder(large) == checkpoint_folder(large) == task.setup.work / "large" / "checkpoint"
    assert len(made) == 1
    assert checkpoint_folder(task) == task.setup.checkpoint


def test_bundle_of_the_default_model_is_the_one_that_is_there(task: Task, fp32: Synthetic) -> None:
    assert open_bundle(task).manifest == fp32.bundle.manifest


def test_models_come_before_what_needs_them() -> None:
    wanted = [part.title for part in gpu_parts.parts(["default", "large"])]
    assert wanted[0] == "models default"
    assert wanted[-5:] == ["speed default", "peer default", "models large", "speed large", "peer large"]
    assert [part.title for part in gpu_parts.parts(["large"], ["speed", "parity"])] == ["parity", "speed large"]
    assert len(gpu_parts.parts(["default"])) == len(gpu_parts.names())


def test_parts_run_in_order_and_none_ends_another(setup: Setup) -> None:
    wanted = [Part(each.__name__, each, 1.0) for each in (behaviours.crashes, behaviours.fails, behaviours.succeeds)]
    found = dict(gpu_parts.outcomes(wanted, setup, 600.0))
    assert {name: outcome.failed for name, outcome in found.items()} == {
        "crashes": True,
        "fails": True,
        "succeeds": False,
    }


def test_the_time_left_is_shared_by_the_parts_that_follow(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def run(name: str, function: Function, setup: Setup, size: str, seconds: float) -> Outcome:
        given.append(seconds)
        return Outcome(10.0 if len(given) == 1 else 120.0, None, {})

    monkeypatch.setattr(gpu_parts, "run", run)
    wanted = [Part("", behaviours.exits, share) for share in (20, 60, 20)]
    assert len(list(gpu_parts.outcomes(wanted, setup, 100.0))) == 3
    assert given == [20.0, 67.5, 0.0]  # the first took half of its share
