import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.file_identity import FileIdentity
from plugins.reload.bundle_watch import Snapshot, changed, look, taken_up

PATHS = [Path("models") / name for name in "abc"]


def identity(version: int) -> frozenset[FileIdentity]:
    return frozenset([FileIdentity("bundle.json", 1, version, 1)])


snapshots = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 2).map(identity))


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "en-de"
    folder.mkdir(parents=True)
    for name in ("bundle.json", "encoder.onnx"):
        (folder / name).write_text(name)
    return folder


def test_a_look_sees_the_bundles_below_a_folder(bundle: Path) -> None:
    (bundle.parent / "notes").mkdir()
    assert list(look(bundle.parent)) == list(look(bundle)) == [bundle]
    assert {file.name for file in look(bundle)[bundle]} == {"bundle.json", "encoder.onnx"}
    assert look(bundle.parent / "missing") == {}


def rewrite(bundle: Path) -> None:
    (bundle / "encoder.onnx").write_text("another encoder")


def replace_by_equal_size(bundle: Path) -> None:
    new = bundle / "new"
    new.write_text("encoder.onn!")
    shutil.copystat(bundle / "encoder.onnx", new)
    os.replace(new, bundle / "encoder.onnx")


def add(bundle: Path) -> None:
    (bundle / "decoder.onnx").write_text("")


def take_away(bundle: Path) -> None:
    (bundle / "encoder.onnx").unlink()


def touch(bundle: Path) -> None:
    os.utime(bundle / "bundle.json", ns=(0, 0))


@pytest.mark.parametrize("change", [rewrite, replace_by_equal_size, add, take_away, touch])
def test_whatever_happens_to_a_file_shows(bundle: Path, change) -> None:
    before = look(bundle)
    change(bundle)
    assert look(bundle) != before


def test_nothing_shows_where_nothing_happens(bundle: Path) -> None:
    assert look(bundle) == look(bundle)


def test_a_bundle_that_is_being_written_has_not_changed_yet() -> None:
    [path, *_] = PATHS
    acted_on, first, second = {}, {path: identity(1)}, {path: identity(2)}
    assert changed(acted_on, acted_on, first) == set()
    assert changed(acted_on, first, second) == set()
    assert changed(acted_on, second, second) == {path}


def test_a_bundle_that_comes_back_in_time_was_never_gone() -> None:
    [path, *_] = PATHS
    there: Snapshot = {path: identity(1)}
    assert changed(there, there, {}) == changed(there, {}, there) == set()
    assert changed(there, {}, {}) == {path}


@given(snapshots, snapshots, snapshots)
def test_what_is_taken_up_is_changed_no_more_and_what_settles_is_taken_up(
    acted_on: Snapshot, before: Snapshot, now: Snapshot
) -> None:
    news = changed(acted_on, before, now)
    after = taken_up(acted_on, now, news)
    assert changed(after, before, now) == set()
    assert taken_up(after, now, changed(after, now, now)) == now
    assert {path: after.get(path) for path in set(PATHS) - news} == {
        path: acted_on.get(path) for path in set(PATHS) - news
    }
