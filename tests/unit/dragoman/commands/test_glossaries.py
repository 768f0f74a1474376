"""What `dragoman glossaries` refuses; the list itself is tested with a server."""

import pytest

from dragoman.cli import main


def test_it_needs_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["glossaries"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dragoman glossaries: argument --address (or DRAGOMAN_SERVER): is required\n"


@pytest.mark.usefixtures("short_pauses")
def test_no_server_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["glossaries", "--address=127.0.0.1:1"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("dragoman glossaries: no server answers at 127.0.0.1:1")
