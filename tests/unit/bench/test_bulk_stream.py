import json
from pathlib import Path

import pytest

from bench.cli import main

BUNDLE = Path(__file__).parents[3] / "models" / "en-de" / "bundle"


def test_a_small_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.json"
    assert main(["bulk-stream", "--count", "400", "--bundle", str(BUNDLE), "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    assert (report["answered_once"], report["errors"]) == (400, 0)
    assert len(report["rows"]) == 20
    assert "- answered_once: 400\n" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["--count", "3"], ["--bundle", "/nowhere"]])
def test_bad_arguments_give_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["bulk-stream", *arguments])
    assert exit_info.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
