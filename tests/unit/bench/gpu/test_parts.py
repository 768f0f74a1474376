"""Each part on a CPU, with a tiny model."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bench.decoding import Graphs
from bench.gpu import floor, served, speed, steps
from bench.gpu.accuracy import parity, placement, real_sentences
from bench.gpu.encoder import difference, encoder
from bench.gpu.kernels import kernels, operators, printed
from bench.gpu.memory import memory
from bench.gpu.models import checkpoint_folder
from bench.gpu.setup import Task, left_out, slot_counts
from bench.sentences import Sentences
from dragoman.bundle import Bundle
from service.runtime.device import DeviceDecoder
from tests.synthetic import Synthetic

SENTENCES = Sentences([[5, 6, 2], [9, 2], [7, 8, 9, 10, 2]], [12, 9, 11])


@pytest.fixture(autouse=True)
def little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floor, "COPY_FLOATS", {"cpu": 2**16})
    monkeypatch.setattr(speed, "FEWEST_SENTENCES", 4)
    monkeypatch.setattr(speed, "SENTENCES_PER_SLOT", 2)
    monkeypatch.setattr(steps, "CAPACITY", 20)
    monkeypatch.setattr(steps, "_COMPANY_TOKENS", 4)


def test_padding_changes_nothing_on_a_cpu(task: Task) -> None:
    figures = encoder(task)
    assert figures["checks"] == {"as served, padding changes nothing": True}
    assert [row["sdpa_kernel"] for row in figures["rows"]] == ["as served", "unset", "16 (MATH)", "1 (FLASH)"]


def test_difference_is_by_the_largest_number() -> None:
    expected = np.array([1.0, -4.0])
    assert difference(expected, np.array([1.5, -4.0])) == pytest.approx(0.125)
    assert difference(expected, np.array([np.nan, -4.0])) == float("inf")


def test_operators_are_named_with_their_device(task: Task) -> None:
    figures = kernels(task)
    decoder = {row["operator"]: row for row in figures["rows"] if row["graph"] == "decoder"}
    assert decoder["GroupQueryAttention"]["nodes"] == 4  # own and source, of two layers
    assert {row["device"] for row in figures["rows"]} == {"CPUExecutionProvider"}
    assert {row["graph"] for row in figures["rows"]} == {"encoder", "decoder"}
    assert all(figures["checks"].values())


def test_kernels_of_the_profiler_belong_to_the_node_before_them() -> None:
    def node(name: str, operator: str, us: int) -> dict[str, object]:
        return {"cat": "Node", "name": name, "dur": us, "args": {"op_name": operator, "provider": "CUDA"}}

    events = [
        {"cat": "Session", "name": "model_run", "dur": 9},
        node("a_kernel_time", "MatMul", 5),
        {"cat": "Kernel", "name": "gemm", "dur": 3},
        node("b_kernel_time", "MatMul", 6),
        node("c_kernel_time", "Add", 20),
        node("c_fence_before", "Add", 1),
    ]
    add, product = operators("decoder", events)
    assert add == {"graph": "decoder", "operator": "Add", "device": "CUDA", "nodes": 1, "us": 20}
    assert (product["nodes"], product["us"], product["kernels"]) == (2, 11, "gemm")


def test_what_libraries_print_is_caught(capfd: pytest.CaptureFixture[str]) -> None:
    with printed() as lines:
        os.write(1, b"Operator=a\n")
    os.write(1, b"later\n")
    assert lines == ["Operator=a"]
    assert capfd.readouterr().out == "later\n"


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
    assert (figures["sentences"], figures["equal_share"], figures["encoder_difference_most"]) == (4, 1.0, 0.0)
    assert figures["bleu_fp32_cpu"] == figures["bleu_fp16_cpu"]


def test_texts_that_are_too_long_lose_their_beginning(fp32: Synthetic) -> None:
    sentences = real_sentences(fp32.bundle, ["word " * 100])
    assert len(sentences.sources[0]) == fp32.bundle.manifest.max_source_tokens
    assert sentences.sources[0][-1] == fp32.bundle.manifest.eos_id


@pytest.mark.parametrize(("most", "counts"), [(1, [1]), (4, [1, 2, 4]), (1000, [2**power for power in range(10)])])
def test_slot_counts_double(most: int, counts: list[int]) -> None:
    assert slot_counts(most) == counts


def test_slot_counts_that_say_most_come_first() -> None:
    assert speed.in_order_of_value(1024) == [256, 1, 64, 1024, 16, 512, 128, 32, 8, 4, 2]
    assert speed.in_order_of_value(4) == [1, 4, 2]


def test_what_is_left_out_is_named() -> None:
    assert left_out("slots", [512, 2]) == "slots 2, 512"
    assert left_out("slots", []) is None


def test_sentences_come_again_until_there_are_enough() -> None:
    portion = speed.cycled(SENTENCES, slots=4)
    assert len(portion) == 8
    assert portion.sources == [*SENTENCES.sources, *SENTENCES.sources, *SENTENCES.sources[:2]]
    assert portion.limits[3] == SENTENCES.limits[0]


def test_speed_has_a_row_for_each_slot_count_and_says_why_there_is_no_peer(task: Task) -> None:
    figures = speed.speed(task)
    assert [row["slots"] for row in figures["rows"]] == [1, 2]
    assert all(row["tokens_per_s"] > 0 and row["floor_ms"] > 0 and row["step_ms"] > 0 for row in figures["rows"])
    assert "peer_tokens_per_s" not in figures["rows"][0]
    assert "no converted model" in figures["peer_error"]


def test_a_peer_that_fails_loses_its_own_figures_only(task: Task) -> None:
    (task.folder / "ctranslate2").mkdir()  # a folder without a model
    figures = speed.speed(task)
    assert [row["slots"] for row in figures["rows"]] == [1, 2]
    assert "peer_tokens_per_s" not in figures["rows"][0]
    assert "model.bin" in figures["peer_error"]


def test_without_time_speed_names_what_is_left_out(hurried: Callable[[float], Task]) -> None:
    figures = speed.speed(hurried(0.0))
    assert figures["rows"] == []
    assert figures["left_out"] == "slots 1, 2"


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


def test_a_random_model_is_made_once(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def write(folder: Path, *_: object) -> None:
        folder.mkdir()
        made.append(folder)

    monkeypatch.setattr("bench.gpu.models.random_model.write_checkpoint", write)
    large = Task(task.setup, "large", task.clock, task.note)
    assert checkpoint_folder(large) == checkpoint_folder(large) == task.setup.work / "large" / "checkpoint"
    assert len(made) == 1
    assert checkpoint_folder(task) == task.setup.checkpoint


def test_bundle_of_the_default_model_is_the_one_that_is_there(task: Task, fp32: Synthetic) -> None:
    from bench.gpu.models import bundle_folder

    assert Bundle.open(bundle_folder(task, "fp16")).manifest == fp32.bundle.manifest
