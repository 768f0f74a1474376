import pytest

from bench import odd_paths
from tests.server_process import BUNDLE


def test_a_short_attack_costs_the_probe_no_call(capsys: pytest.CaptureFixture[str]) -> None:
    if not (BUNDLE / "bundle.json").is_file():
        pytest.skip("models/en-de/bundle is not there")
    arguments = ["--seconds=0.5", "--quiet-s=0.5", "--per-second=100", f"--bundle={BUNDLE}"]
    assert odd_paths.main(arguments) == 0
    head, _, *rows, _, sent = capsys.readouterr().out.splitlines()
    assert head == "| | probe's calls | errors | p50 ms | p99 ms |"
    assert [row.split(" | ")[0] for row in rows] == ["| before", "| during", "| after"]
    assert all(row.split(" | ")[2] == "0" for row in rows)
    assert "frames with the path" in sent
