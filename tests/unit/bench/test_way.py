"""The arguments of the measurement of what a call passes; tests/e2e counts a call."""

from pathlib import Path

import pytest

from bench.cli import main


@pytest.mark.parametrize("name", ["none", "checkpoint"])
def test_what_is_no_bundle_is_named_before_a_server_starts(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(SystemExit) as stopped:
        main(["way", "--bundle", str(tmp_path / name)])
    assert stopped.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"dragoman bench way: {tmp_path / name}")
