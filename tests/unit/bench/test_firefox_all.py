from pathlib import Path

import pytest

from bench.firefox_all import main, measure
from tests.synthetic import Synthetic

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def checkout_is_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_four_models_in_the_memory_of_two(int8: Synthetic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.firefox_all._KEEP_ALIVE_S", 1)
    report = measure(int8.bundle.path, ["de", "fr"], 2)
    assert report["models"] == 4
    assert report["loads"] >= 4
    assert report["evictions"] >= 2
    assert 10 < report["listed_mib"] < report["peak_mib"]


@pytest.mark.parametrize("arguments", [["--languages=1"], ["--languages=99"], ["--bundle=/nowhere"]])
def test_bad_arguments_are_told_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("python -m bench.firefox_all: ")
