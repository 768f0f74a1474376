import threading

import pytest

from dragoman.errors import DataError
from plugins.bulk.here import run
from plugins.bulk.plan import Chunk
from plugins.bulk.worker import Done

CHUNKS = [Chunk(number, "a.csv", 0, 0, number, 0, 0, 0) for number in range(1, 9)]


@pytest.mark.parametrize("at_a_time", [1, 3])
def test_all_chunks_are_worked_on(at_a_time: int) -> None:
    dones = list(run(CHUNKS, lambda chunk: Done(chunk.rows, 0), at_a_time=at_a_time))
    assert sorted(done.rows for done in dones) == list(range(1, 9))


def test_some_are_worked_on_at_a_time() -> None:
    meeting = threading.Barrier(4, timeout=60)

    def work(chunk: Chunk) -> Done:
        meeting.wait()
        return Done(chunk.rows, 0)

    assert len(list(run(CHUNKS, work, at_a_time=4))) == 8


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_after_an_error_none_is_begun(at_a_time: int) -> None:
    begun = []

    def work(chunk: Chunk) -> Done:
        begun.append(chunk.number)
        raise DataError("bad")

    with pytest.raises(DataError, match="bad"):
        list(run(CHUNKS, work, at_a_time=at_a_time))
    assert len(begun) < len(CHUNKS)
