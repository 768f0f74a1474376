import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from plugins.access.watched_files import ReloadableFiles
from service.settings import SettingsError
from service.telemetry.metrics import Metrics

PERIOD_S = 0.001


class Files:
    """Two files with one number each; the value is both, and right if they are equal."""

    def __init__(self, folder: Path) -> None:
        self.paths = [folder / "one", folder / "other"]
        self.metrics = Metrics()
        self.write(1, 1)

    def write(self, *numbers: int) -> None:
        for path, number in zip(self.paths, numbers, strict=True):
            path.write_text(str(number))

    def make(self, contents: Sequence[bytes]) -> tuple[int, ...]:
        one, other = map(int, contents)
        if one != other:
            raise SettingsError(f"{one} is not {other}")
        return one, other

    def watch(self) -> ReloadableFiles[tuple[int, ...]]:
        return ReloadableFiles("numbers", self.paths, lambda contents: self.make(contents), self.metrics)

    @property
    def successful(self) -> float:
        return self.metrics.total("files_in_force", files="numbers")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_a_change_is_taken_and_told_once(files) -> None:
    watched = files.watch()
    with capture_logs() as log:
        watched.refresh()
        files.write(2, 2)
        watched.refresh()
        watched.refresh()
    assert watched.value == (2, 2)
    assert files.successful == 1
    assert [entry["event"] for entry in log] == ["files reloaded"]


def test_a_wrong_change_keeps_the_value_and_is_told_once(files) -> None:
    watched = files.watch()
    files.write(1, 2)
    with capture_logs() as log:
        watched.refresh()
        watched.refresh()
    assert watched.value == (1, 1)
    assert files.successful == 0
    assert [(entry["log_level"], entry["error"]) for entry in log] == [("error", "1 is not 2")]


def test_a_missing_file_keeps_the_value_until_it_is_back(files) -> None:
    watched = files.watch()
    files.paths[0].unlink()
    watched.refresh()
    assert (watched.value, files.successful) == ((1, 1), 0)
    files.write(1, 1)
    watched.refresh()
    assert (watched.value, files.successful) == ((1, 1), 1)


def test_the_second_half_of_a_change_completes_it(files) -> None:
    watched = files.watch()
    for numbers, value in (((2, 1), (1, 1)), ((2, 2), (2, 2))):
        files.write(*numbers)
        watched.refresh()
        assert watched.value == value
    assert files.successful == 1


def test_files_that_change_while_they_are_checked_are_taken_later(files) -> None:
    make = files.make

    def make_while_somebody_writes(contents: Sequence[bytes]) -> tuple[int, ...]:
        value = make(contents)
        if value == (2, 2):
            files.write(3, 3)
        return value

    files.make = make_while_somebody_writes
    watched = files.watch()
    files.write(2, 2)
    watched.refresh()
    assert watched.value == (1, 1)
    watched.refresh()
    assert watched.value == (3, 3)


def test_what_is_wrong_at_the_start_is_an_error(files) -> None:
    files.write(1, 2)
    with pytest.raises(SettingsError, match="1 is not 2"):
        files.watch()
    files.paths[1].unlink()
    with pytest.raises(SettingsError, match=f"{files.paths[1]}: No such file"):
        files.watch()


async def test_watched_files_are_looked_at_again_and_again(files) -> None:
    watched = files.watch()
    async with asyncio.timeout(60), watched.watched(PERIOD_S):
        for number in (2, 3):
            files.write(number, number)
            while watched.value != (number, number):
                await asyncio.sleep(0.001)


async def test_nobody_looks_any_more_afterwards(files) -> None:
    others = asyncio.all_tasks()
    async with files.watch().watched(PERIOD_S):
        [watching] = asyncio.all_tasks() - others
    async with asyncio.timeout(60):
        await asyncio.wait([watching])


async def test_whatever_goes_wrong_in_a_look_there_is_another_one(files) -> None:
    watched = files.watch()
    async with asyncio.timeout(60), watched.watched(PERIOD_S):
        make, files.make = files.make, lambda contents: 1 / 0
        files.write(2, 2)
        while files.successful:
            await asyncio.sleep(0.001)
        assert watched.value == (1, 1)
        files.make = make
        while not files.successful:  # told after the value has changed, by another thread
            await asyncio.sleep(0.001)
    assert watched.value == (2, 2)


def test_a_device_is_refused_at_the_start_and_as_a_change(files) -> None:
    watched = files.watch()
    files.paths[0].unlink()
    files.paths[0].symlink_to("/dev/zero")
    watched.refresh()
    assert (watched.value, files.successful) == ((1, 1), 0)
    with pytest.raises(SettingsError, match=f"{files.paths[0]}: is not a regular file"):
        files.watch()
