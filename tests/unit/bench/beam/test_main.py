"""The arguments of `python -m bench.beam`."""

from pathlib import Path

import pytest

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.beam import __main__ as beam

BASE = ["--shapes", "base"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "argument --data: the default model is measured on real sentences"),
        (["--data", "missing.tsv"], "argument --data: no file missing.tsv"),
        (["--shapes", "huge"], "argument --shapes: no 'huge'; there are default, base"),
        ([*BASE, "--beam-sizes", "1,0"], "argument --beam-sizes: must be at least 1, not 0"),
        ([*BASE, "--beam-sizes", "1;2"], "argument --beam-sizes: '1;2' is not a whole number"),
        (
            [*BASE, "--beam-sizes", "4,8", "--slots", "64,6"],
            "argument --slots: a beam of 8 hypotheses takes as many slots, not 6",
        ),
        ([*BASE, "--markdown", "missing/out.md"], "argument --markdown: cannot write a file missing/out.md"),
    ],
)
def test_a_wrong_argument_is_one_line(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        beam.main(arguments)
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"python -m bench.beam: {message}")
    assert error.count("\n") == 1


def test_a_file_without_pairs_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("One.\nTwo.\n")
    with pytest.raises(SystemExit):
        beam.main(["--data", str(texts), "--shapes", "default", "--work", str(tmp_path)])
    assert capsys.readouterr().err.splitlines()[-1].endswith("is a pair of texts with a tab between")
