from pathlib import Path

import pytest

from dragoman.errors import DataError
from plugins.library import child


def test_what_it_says_goes_to_standard_error_but_for_the_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "PROGRAM", ("sh", "-c", 'echo "Ä $VARIABLE"; echo "wrote $3"; echo error >&2', "sh"))
    child.import_into(tmp_path, ["a/b"], {"VARIABLE": "set"})
    out, said = capfd.readouterr()
    assert (out, sorted(said.splitlines())) == ("", ["error", "Ä set"])


def test_its_exit_code_is_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        child.import_into(tmp_path / "out", ["nowhere"], {})
    assert ended.value.code == 2
    assert capfd.readouterr() == ("", "dragoman import: nowhere: no such folder\n")


def test_one_that_the_system_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "PROGRAM", ("sh", "-c", "kill -KILL $$"))
    with pytest.raises(DataError, match="the import was ended by SIGKILL; it may need more memory than there is"):
        child.import_into(tmp_path / "out", [], {})
