"""The worker of bulk jobs with the engine inside: it makes sure of the model, and refuses what a server refuses."""

from pathlib import Path

import pytest

from dragoman.access import Access
from dragoman.bundle import Manifest
from dragoman.errors import BundleError
from plugins.bulk.columns import Columns
from plugins.bulk.open_worker import TARGET, identity_of, open_worker
from plugins.bulk.plan import planned
from plugins.bulk.worker import Done
from tests.bulk_process import read_rows, write_rows
from tests.server_process import BUNDLE

IDENTITY = identity_of(Manifest.read(BUNDLE))


def opened(out: Path, **identity: str):
    return open_worker(
        out=out,
        id_column="id",
        text_column="text",
        identity=IDENTITY | identity,
        source="",
        target="",
        models=BUNDLE,
        address=None,
        let_in=Access(),
    )


def test_actors_find_it_by_its_name() -> None:
    assert TARGET == "plugins.bulk.open_worker:open_worker"


@pytest.mark.parametrize("field", ["checkpoint_sha256", "precision"])
def test_another_model_of_the_same_name_is_refused(tmp_path: Path, field: str) -> None:
    with pytest.raises(
        BundleError, match=r"model en-de is now of checkpoint .* in int8; that of the job is of checkpoint"
    ):
        opened(tmp_path, **{field: "another"})


def test_a_text_that_is_too_large_has_an_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MAX_TEXT_BYTES", "20")
    [chunk] = planned([write_rows(tmp_path / "in.jsonl", ["It rains.", "It rains. " * 3])], Columns("id", "text"), 9)
    assert opened(tmp_path)(chunk) == Done(2, 1)
    rows = read_rows(tmp_path)
    assert [row["error"] for row in rows] == [None, "must be at most 20 bytes, is 30"]
    assert [row["model_sha256"] for row in rows] == [IDENTITY["checkpoint_sha256"]] * 2


def test_a_part_may_have_no_text_that_is_small_enough(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("DRAGOMAN_MAX_TEXT_BYTES", "1")
    [chunk] = planned([write_rows(tmp_path / "in.jsonl", ["It rains."])], Columns("id", "text"), 9)
    assert opened(tmp_path)(chunk) == Done(1, 1)
