import threading

import pytest

from bench.beside import beside


def test_the_end_of_the_block_ends_the_work() -> None:
    seen = []
    began = threading.Event()

    def work(ended: threading.Event) -> None:
        began.set()
        ended.wait()
        seen.append("ended")

    with beside(work):
        began.wait()
        assert seen == []
    assert seen == ["ended"]


def test_an_error_of_the_work_is_raised_at_the_end_of_the_block() -> None:
    def work(ended: threading.Event) -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"), beside(work):
        pass


def test_the_error_of_the_block_comes_first() -> None:
    def work(ended: threading.Event) -> None:
        raise ValueError("planted in the work")

    with pytest.raises(KeyError, match="planted in the block"), beside(work):
        raise KeyError("planted in the block")
