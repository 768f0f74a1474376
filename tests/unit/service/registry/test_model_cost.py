"""What a model costs, by its manifest and its files."""

from pathlib import Path

import pytest

from dragoman.bundle import OUTPUT_LAYER, SHORTLIST, STATES_DECODER, Bundle
from dragoman.errors import BundleError
from service.registry.capacity import slot_bytes
from service.registry.model_cost import Cost, anonymous_bytes, estimate
from service.settings import Settings
from tests.server_process import BUNDLE

NO_CACHES = {"encoder_cache_mb": 0, "result_cache_mb": 0}


def estimated(**settings: int) -> Cost:
    return estimate(Bundle.listed(BUNDLE), Settings(**{"threads": 1, "slots": 8, **NO_CACHES, **settings}))


def test_files_count_where_a_model_is_loaded() -> None:
    files = sum(file.stat().st_size for file in BUNDLE.iterdir() if file.name != "bundle.json")
    assert estimated().loaded_bytes == 4_000_000 + int(1.75 * files)


def test_threads_slots_and_caches_count_as_it_works() -> None:
    one = estimated()
    assert estimated(threads=3).later_bytes == 3 * one.later_bytes
    assert estimated(encoder_cache_mb=7, result_cache_mb=2).later_bytes == one.later_bytes + 9_000_000
    manifest = Bundle.listed(BUNDLE).manifest
    of_slot = slot_bytes(manifest) + 4 * (manifest.vocabulary_size + manifest.heads * manifest.max_source_tokens)
    assert estimated(slots=9).later_bytes == one.later_bytes + of_slot


def test_candidates_count_where_they_are_used() -> None:
    bare = Bundle.listed(BUNDLE)
    more = dict.fromkeys((SHORTLIST, STATES_DECODER, OUTPUT_LAYER), "")
    listed = Bundle(bare.path, bare.manifest.model_copy(update={"files": bare.manifest.files | more}))
    files = {name: (BUNDLE / name).stat().st_size for name in bare.manifest.files}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("service.registry.model_cost._size_bytes", lambda path: files.get(path.name, 0))
        slots = Settings(threads=1, slots=8, **NO_CACHES)
        without = estimate(listed, slots.model_copy(update={"shortlists": False}))
        assert without == estimate(bare, slots)
        assert estimate(listed, slots).later_bytes == without.later_bytes + 8 * 1_400 * bare.manifest.d_model


def test_what_a_load_took_counts_only_where_it_is_more() -> None:
    assert Cost(100, 10).corrected(120) == Cost(120, 10)
    assert Cost(100, 10).corrected(-5) == Cost(100, 10)
    assert Cost(120, 10).total_bytes == 130


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    bundle = Bundle(tmp_path, Bundle.listed(BUNDLE).manifest)
    with pytest.raises(BundleError, match=rf"{tmp_path}/.*: cannot read: No such file"):
        estimate(bundle, Settings())


def test_memory_of_this_process_is_measured() -> None:
    before = anonymous_bytes()
    block = bytearray(b"x" * 64_000_000)
    assert anonymous_bytes() - before > 32_000_000 or not before
    assert block
