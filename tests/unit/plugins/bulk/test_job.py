import pytest

from dragoman.errors import DataError
from plugins.bulk.job import COMPLETE, InputFile, Job, begun, complete

JOB = Job(
    dragoman="1.0",
    files=(InputFile(name="in.csv", sha256="a" * 64),),
    id_column="id",
    text_column="text",
    part_rows=10,
    model={"name": "en-de", "precision": "int8"},
    settings={"beam_size": "1"},
)


def test_a_job_is_begun_and_goes_on_in_its_folder(tmp_path) -> None:
    out = tmp_path / "a" / "out"
    with begun(out, JOB):
        (out / "part-00000000.csv").touch()
        (out / ".0123456789abcdef.part").touch()  # a process was killed
    with begun(out, JOB):
        assert {path.name for path in out.iterdir()} == {"_job.json", "_lock", "part-00000000.csv"}
        complete(out)
    assert (out / COMPLETE).exists()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"dragoman": "1.1"}, "dragoman: 1.0 there, 1.1 now"),
        ({"files": (InputFile(name="in.csv", sha256="b" * 64),)}, "files: in.csv (aaaaaaaaaaaa) there, in.csv (bbbb"),
        ({"text_column": "body"}, "text_column: text there, body now"),
        ({"part_rows": 20}, "part_rows: 10 there, 20 now"),
        (
            {"model": {"name": "en-de", "precision": "fp32"}},
            "model: precision int8 there, fp32 now;",
        ),
        (
            {"model": {"name": "de-en", "precision": "int8", "target": "en"}},
            "model: name en-de there, de-en now; target none there, en now;",
        ),
        ({"settings": {}}, "settings: beam_size 1 there, none now"),
    ],
)
def test_another_job_is_not_mixed_with_it(tmp_path, changed, why) -> None:
    with begun(tmp_path, JOB):
        (tmp_path / "part-00000.csv").touch()
    with pytest.raises(DataError) as error, begun(tmp_path, JOB.model_copy(update=changed)):
        pass
    assert str(error.value).startswith(f"{tmp_path}: holds a job with other {why}")
    assert str(error.value).endswith("; a new job needs an empty folder")


def test_a_job_without_parts_gives_way_to_another(tmp_path) -> None:
    for job in (JOB, JOB.model_copy(update={"part_rows": 20}), JOB):
        with begun(tmp_path, job):
            assert Job.model_validate_json((tmp_path / "_job.json").read_bytes()) == job


def test_a_file_is_no_folder(tmp_path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(DataError, match="out: must be a folder"), begun(tmp_path / "out", JOB):
        pass


def test_a_folder_with_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "mine.txt").touch()
    with (
        pytest.raises(DataError, match="must be an empty folder, or hold a job of dragoman bulk"),
        begun(tmp_path, JOB),
    ):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"mine.txt"}


@pytest.mark.parametrize("left", [(), (".0123456789abcdef.part",)])
def test_a_job_is_begun_where_a_process_was_killed_before_it_had_described_its_own(tmp_path, left) -> None:
    for name in ("_lock", *left):
        (tmp_path / name).touch()
    with begun(tmp_path, JOB):
        assert {path.name for path in tmp_path.iterdir()} == {"_job.json", "_lock"}


@pytest.mark.parametrize("names", [("_lock", "mine.txt"), (".mine.part",)])
def test_what_no_killed_process_leaves_is_refused(tmp_path, names) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(DataError, match="must be an empty folder"), begun(tmp_path, JOB):
        pass
    assert {path.name for path in tmp_path.iterdir()} == set(names)


def test_two_cannot_work_in_one_folder(tmp_path) -> None:
    with (
        begun(tmp_path, JOB),
        pytest.raises(DataError, match="another dragoman bulk works here"),
        begun(tmp_path, JOB),
    ):
        pass
    with begun(tmp_path, JOB):
        pass


def test_a_broken_description_is_named(tmp_path) -> None:
    (tmp_path / "_job.json").write_text("{")
    with pytest.raises(DataError, match=r"_job\.json: "), begun(tmp_path, JOB):
        pass
