"""The arguments of `dragoman bench compare`, and `dragoman bench` itself."""

from pathlib import Path

import pytest

from bench import cli

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')

from bench.compare import command as compare


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "argument --data: the default model is measured on real sentences"),
        (["--data", "missing.tsv"], "argument --data: no file missing.tsv"),
        (["--parts", "offline,online"], "argument --parts: no 'online'; there are offline, single, served"),
        (["--peers", "marian"], "argument --peers: no 'marian'; there are ctranslate2, transformers"),
        (["--models", "base", "--beam-sizes", "1,33"], "argument --beam-sizes: must be at most 32"),
        (["--beam-sizes", "1,0"], "argument --beam-sizes: must be at least 1, not 0"),
        (["--rounds", "0"], "argument --rounds: must be at least 1, not 0"),
        (["--json", "missing/out.json"], "argument --json: cannot write a file missing/out.json"),
        (["--precision", "fp16"], "argument --precision: invalid choice"),
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
        compare.main(arguments)
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dragoman bench compare: {message}")
    assert error.count("\n") == 1


def test_a_file_without_sentences_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    with pytest.raises(SystemExit):
        compare.main(["--data", str(empty), "--parts", "offline", "--models", "default", "--work", str(tmp_path)])
    assert capsys.readouterr().err.splitlines()[-1].startswith("dragoman bench compare: no line of")


def test_bench_lists_its_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    assert "compare" in capsys.readouterr().out


def test_bench_refuses_an_unknown_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compete"]) == 2
    assert capsys.readouterr().err == "dragoman bench: no benchmark 'compete'; there are compare, roofline\n"


def test_bench_passes_the_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["compare", "--help"])
    assert exit_.value.code == 0
    assert "--peers" in capsys.readouterr().out
