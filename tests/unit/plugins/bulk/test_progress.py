import pytest

from plugins.bulk import progress
from plugins.bulk.progress import watched
from plugins.bulk.worker import Done


def test_chunks_are_added_up_in_silence(capsys) -> None:
    assert watched("bulk", [Done(3, 1), Done(4, 0)], 10, 3) == Done(7, 1)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_a_line_tells_how_far_it_is(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "_PAUSE_S", -1.0)
    watched("bulk", [Done(3, 1), Done(4, 0)], 10, 3)
    assert capsys.readouterr().err == "dragoman bulk: 6 of 10 rows\ndragoman bulk: 10 of 10 rows\n"


def test_an_error_goes_on() -> None:
    def fails():
        yield Done(1, 0)
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        watched("bulk", fails(), 2, 0)
