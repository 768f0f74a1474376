import pytest

from bench.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "missing.tsv"], "--data: no file missing.tsv"),
        (["--factor", "0"], "--factor: must be more than 0, not 0"),
        (["--texts-per-request", "0"], "--texts-per-request: must be at least 1, not 0"),
        (
            ["--plot", "/no/such/folder/x.png"],
            "--plot: cannot write a file '/no/such/folder/x.png': there is no folder /no/such/folder",
        ),
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["overload", *arguments])
    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
