"""Real pipes and files: a reader that reads, one that does not, one that left, and a full disk."""

import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from select import PIPE_BUF

import pytest

from service.telemetry.line_writer import LineWriter

PATIENCE_S = 120.0


class Dropped:
    """Counts, and lets a test wait for the count."""

    def __init__(self) -> None:
        self.lines = 0
        self._changed = threading.Condition()

    def __call__(self, lines: int) -> None:
        with self._changed:
            self.lines += lines
            self._changed.notify_all()

    def wait_for(self, lines: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.lines >= lines, PATIENCE_S)


def thread_of(make: Callable[[], LineWriter]) -> tuple[LineWriter, threading.Thread]:
    """Makes a writer, and finds the thread that it starts."""
    before = set(threading.enumerate())
    writer = make()
    [thread] = set(threading.enumerate()) - before
    return writer, thread


@pytest.fixture
def dropped() -> Dropped:
    return Dropped()


def test_lines_come_in_order_and_all_of_them(tmp_path: Path, dropped: Dropped) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriter(file.fileno(), dropped)
        for number in range(3000):
            writer.write(f"{number}\n")
        writer.close()
    assert (tmp_path / "log").read_text().split() == [str(number) for number in range(3000)]
    assert dropped.lines == 0


def test_lines_of_several_threads_stay_whole(tmp_path: Path, dropped: Dropped) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriter(file.fileno(), dropped)
        threads = [
            threading.Thread(target=lambda name=name: [writer.write(f"{name * 20}\n") for _ in range(500)])
            for name in "abcd"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        writer.close()
    lines = (tmp_path / "log").read_text().split()
    assert sorted(set(lines)) == [name * 20 for name in "abcd"]
    assert len(lines) == 2000


def test_a_pipe_gets_whole_lines_at_once(dropped: Dropped, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than a page might stand inside a line of another process."""
    reading, writing = os.pipe()
    write, sizes = os.write, []
    monkeypatch.setattr(os, "write", lambda descriptor, data: sizes.append(len(data)) or write(descriptor, data))
    writer = LineWriter(writing, dropped)
    lines = [f"{number} {'x' * number}\n" for number in range(200)] + ["y" * 2 * PIPE_BUF + "\n", "the last\n"]
    for line in lines:
        writer.write(line)
    writer.close()
    os.close(writing)
    with open(reading) as pipe:
        assert pipe.readlines() == lines
    assert len(sizes) < len(lines) / 10
    assert [size for size in sizes if size > PIPE_BUF] == [2 * PIPE_BUF + 1]


def test_a_reader_that_does_not_read_keeps_nobody_waiting(dropped: Dropped) -> None:
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        with suppress(BlockingIOError):
            while os.write(writing, b"x" * 1024):
                pass
        os.set_blocking(writing, True)
        writer, thread = thread_of(lambda: LineWriter(writing, dropped))
        for _ in range(100_000):
            writer.write("a line\n")
        assert dropped.lines >= 80_000  # all but those that wait and those that the thread took before it was stuck
        writer.close()  # gives up
        assert thread.is_alive()
    finally:
        os.close(reading)  # the write fails, and the thread ends
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        os.close(writing)


def test_a_reader_that_left_costs_lines_and_nothing_else(dropped: Dropped) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    writer = LineWriter(writing, dropped)
    writer.write("one\n")
    writer.write("two\n")
    dropped.wait_for(2)
    writer.write("three\n")
    writer.close()
    os.close(writing)
    assert dropped.lines == 3


def test_a_full_disk_costs_lines_and_nothing_else(dropped: Dropped) -> None:
    with open("/dev/full", "wb", buffering=0) as file:
        writer = LineWriter(file.fileno(), dropped)
        writer.write("one\n")
        dropped.wait_for(1)
        writer.write("two\n")
        writer.close()
    assert dropped.lines == 2


def test_lines_go_on_after_a_full_disk(tmp_path: Path, dropped: Dropped, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk takes two lines and a half, then nothing for a while: what is lost is counted, later lines are whole."""
    write, room = os.write, [10]

    def until_full(descriptor: int, data: bytes) -> int:
        if descriptor != file.fileno():
            return write(descriptor, data)
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = write(descriptor, data[: room[0]])
        room[0] -= count
        return count

    monkeypatch.setattr(os, "write", until_full)
    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriter(file.fileno(), dropped)
        for line in ("one\n", "two\n", "three\n", "four\n"):
            writer.write(line)
        dropped.wait_for(2)
        room[0] = 0
        writer.write("five\n")
        dropped.wait_for(3)
        room[0] = 1000
        writer.write("six\n")
        writer.close()
    assert (tmp_path / "log").read_text().splitlines() == ["one", "two", "th", "six"]
    assert dropped.lines == 3


def test_one_with_nothing_to_write_ends_when_it_is_closed(dropped: Dropped) -> None:
    writer, thread = thread_of(lambda: LineWriter(2, dropped))
    writer.close()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_what_no_encoding_has_is_written_all_the_same(tmp_path: Path, dropped: Dropped) -> None:
    with (tmp_path / "log").open("wb", buffering=0) as file:
        writer = LineWriter(file.fileno(), dropped)
        writer.write("a\ud800b\n")
        writer.close()
    assert (tmp_path / "log").read_text() == "a\\ud800b\n"
