"""What the slots of a model take, as computed and as reserved."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.bundle import WEIGHTS, Bundle, Manifest
from dragoman.cli import main
from dragoman.errors import BundleError
from service.registry.capacity import describe, item_bytes, run_threads_of, slot_bytes, slots_of
from service.registry.folders import one_name
from service.runtime.slots import SlotTable
from service.settings import MEGABYTE, Settings
from service.telemetry.metrics import KV_CACHE_FORMULA


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
def test_what_is_computed_is_what_is_reserved(manifest: Manifest, precision: str) -> None:
    changes = {"precision": precision, "decoder_layers": 3, "head_dim": 2 * manifest.head_dim}
    manifest = manifest.model_copy(update=changes)
    assert SlotTable(manifest, slots=5).cache_bytes == 5 * slot_bytes(manifest)


def test_without_a_budget_there_are_as_many_slots_as_asked_for(manifest: Manifest) -> None:
    assert slots_of(manifest, Settings(slots=4096)) == 4096


@given(budget_mb=st.integers(1, 2_000), threads=st.integers(1, 32), slots=st.integers(1, 4096))
def test_a_budget_is_used_and_kept(manifest: Manifest, budget_mb: int, threads: int, slots: int) -> None:
    settings = Settings(kv_cache_mb=budget_mb, threads=threads, slots=slots)
    granted = slots_of(manifest, settings)
    assert 1 <= granted <= slots
    assert threads * granted * slot_bytes(manifest) <= budget_mb * MEGABYTE
    if granted < slots:
        assert threads * (granted + 1) * slot_bytes(manifest) > budget_mb * MEGABYTE


def test_a_budget_below_one_slot_a_thread_is_refused_and_says_what_is_needed(manifest: Manifest) -> None:
    threads = MEGABYTE // slot_bytes(manifest) + 1
    with pytest.raises(BundleError, match=r"en-de: .* 2 MB with one slot .* \(--kv-cache-mb\) allows 1$"):
        slots_of(manifest, Settings(kv_cache_mb=1, threads=threads))
    slots_of(manifest, Settings(kv_cache_mb=2, threads=threads))


def test_a_budget_below_the_beam_of_requests_that_say_none_is_refused(manifest: Manifest) -> None:
    threads = MEGABYTE // (3 * slot_bytes(manifest))
    assert slots_of(manifest, Settings(kv_cache_mb=1, threads=threads, beam_size=3)) == 3
    with pytest.raises(BundleError, match=r"en-de: .* 2 MB with 4 slots, the beam size, on each .* allows 1$"):
        slots_of(manifest, Settings(kv_cache_mb=1, threads=threads, beam_size=4))


@pytest.mark.parametrize("precision", ["fp32", "int8", "fp16"])
@pytest.mark.parametrize("cell", ["attention", "ssru"])
def test_the_description_holds_the_sum_that_gives_the_bytes(manifest: Manifest, cell: str, precision: str) -> None:
    manifest = manifest.model_copy(update={"decoder_cell": cell, "precision": precision, "decoder_layers": 3})
    described = describe(manifest, Settings(threads=2, slots=7))
    assert described["slots"] == 7
    assert eval(described["computed"]) == described["bytes"] == 2 * 7 * slot_bytes(manifest)
    of_attention, of_ssru = KV_CACHE_FORMULA.split("; of a decoder of SSRU cells ")
    formula = (of_ssru if cell == "ssru" else of_attention).replace("bytes of a ", "bytes_of_a_")
    assert described["computed"].count("*") == formula.count("*")
    values = {"threads": 2, "slots": 7, "target_prefix": manifest.languages.longest_target_prefix}
    values |= {"bytes_of_a_number": item_bytes(manifest), "bytes_of_a_state": 2 if precision == "fp16" else 4}
    assert eval(formula, manifest.model_dump(), values) == described["bytes"]


def test_the_configuration_tells_of_every_model_and_of_what_is_wrong(
    manifest: Manifest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("good", manifest.model_dump_json()), ("broken", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bundle.json").write_text(text)
    assert main(["serve", "--print-config", f"--models={tmp_path}", "--threads=3"]) == 2
    printed = json.loads(capsys.readouterr().out)["kv_cache"]
    assert printed["formula"] == KV_CACHE_FORMULA
    assert printed["models"]["en-de"]["bytes"] == 3 * 32 * slot_bytes(manifest)
    assert "broken/bundle.json" in printed["models"]["broken"]["error"]


def test_the_configuration_tells_of_two_models_of_one_name(
    manifest: Manifest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in "ab":
        (tmp_path / place).mkdir()
        (tmp_path / place / "bundle.json").write_text(manifest.model_dump_json())
    assert main(["serve", "--print-config", f"--models={tmp_path}"]) == 2
    printed = json.loads(capsys.readouterr().out)["kv_cache"]["models"]
    assert printed == {"en-de": {"error": one_name("en-de", [tmp_path / "a", tmp_path / "b"])}}


@pytest.mark.parametrize(
    ("megabytes", "flags", "expected"),
    [
        (255, {}, 1),
        (256, {}, 3),
        (256, {"run_threads": 1}, 1),
        (255, {"run_threads": 2}, 2),
        (256, {"processes": 2}, 1),
    ],
)
def test_a_run_of_a_large_model_uses_several_cores(
    manifest: Manifest, tmp_path: Path, megabytes: int, flags: dict[str, int], expected: int
) -> None:
    with (tmp_path / WEIGHTS).open("wb") as file:
        file.truncate(megabytes * MEGABYTE)  # takes no room on the disk
    manifest = manifest.model_copy(update={"files": {WEIGHTS: "0" * 64}})
    assert run_threads_of(Bundle(tmp_path, manifest), Settings(threads=3, **flags)) == expected


def test_a_run_of_a_model_whose_graphs_hold_its_weights_uses_one_core(manifest: Manifest, tmp_path: Path) -> None:
    assert run_threads_of(Bundle(tmp_path, manifest), Settings(threads=3)) == 1
