"""The arguments of `dragoman bench compare`, and `dragoman bench` itself."""

from pathlib import Path

import pytest

from bench import cli

pytest.importorskip("ctranslate2", reason='needs the extra "peers"')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "argument --data: the default model is measured on real sentences"),
        (["--data", "missing.tsv"], "argument --data: no file missing.tsv"),
        (["--parts", "offline,online"], "argument --parts: no 'online'; there are offline, single, served"),
        (["--models", "huge"], "argument --models: no 'huge'; there are default, base, large, opus-mt, nllb-600m"),
        (["--models", "base", "--beam-sizes", "1,33"], "argument --beam-sizes: must be at most 32"),
        (["--beam-sizes", "1,0"], "argument --beam-sizes: must be at least 1, not 0"),
        (["--rounds", "0"], "argument --rounds: must be at least 1, not 0"),
        (
            ["--json", "missing/out.json"],
            "argument --json: cannot write a file 'missing/out.json': there is no folder missing",
        ),
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
        cli.main(["compare", *arguments])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"dragoman bench compare: {message}")
    assert error.count("\n") == 1


def test_a_file_without_sentences_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    with pytest.raises(SystemExit):
        cli.main(
            ["compare", "--data", str(empty), "--parts", "offline", "--models", "default", "--work", str(tmp_path)]
        )
    assert capsys.readouterr().err.splitlines()[-1].startswith("dragoman bench compare: no line of")


def test_bench_lists_its_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in cli.MEASUREMENTS)


@pytest.mark.parametrize("name", cli.MEASUREMENTS)
def test_every_benchmark_has_a_parser_and_says_what_it_measures(name: str) -> None:
    if name == "training":
        pytest.importorskip("torch", reason='needs the extra "train"')
    parser = cli.parser_of(name)
    assert parser.prog == f"dragoman bench {name}"
    assert parser.description
    assert "--json" in parser.format_usage()


def test_bench_refuses_an_unknown_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compete"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dragoman bench: no benchmark 'compete'; there are compare, overload, ")
    assert error.count("\n") == 1


def test_bench_passes_the_rest_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["compare", "--help"])
    assert exit_.value.code == 0
    assert "--beam-sizes" in capsys.readouterr().out
