import json
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from bench.gpu import __main__ as gpu
from bench.gpu import parts as gpu_parts
from bench.gpu.parts import Part
from tests.synthetic import Synthetic
from tests.unit.bench.gpu import behaviours
from tests.unit.bench.gpu.conftest import PAIRS, ROOT

without_cuda = pytest.mark.skipif(
    "CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="this onnxruntime can use a GPU"
)


@without_cuda
def test_without_a_gpu_it_is_one_line_and_exit_2() -> None:
    done = subprocess.run([sys.executable, "-m", "bench.gpu"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "CUDAExecutionProvider" in done.stderr
    assert done.stderr.count("\n") == 1


def test_bad_data_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(["--device", "cpu", "--data", str(tmp_path / "none.tsv")])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("flag", [["--parts", "graph"], ["--sizes", "default,huge"]])
def test_parts_and_sizes_that_do_not_exist_are_named(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        gpu.main(flag)
    assert ended.value.code == 2
    assert f"no {flag[1].split(',')[-1]!r}; there are" in capsys.readouterr().err


def test_chosen_parts_run_and_are_written(
    tmp_path: Path, fp32: Synthetic, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    work, out = tmp_path / "work", tmp_path / "gpu.json"
    (work / "default").mkdir(parents=True)
    (work / "default" / "bundle-fp16").symlink_to(fp32.bundle.path)
    files = ["--data", str(PAIRS), "--work", str(work), "--json", str(out)]
    assert gpu.main(["--device", "cpu", "--parts", "placement", *files]) == 0
    printed = capsys.readouterr().out
    assert "all parts ran, all as expected" in printed
    parts = json.loads(out.read_text())["parts"]
    assert list(parts) == ["libraries", "placement"]
    assert parts["libraries"]["onnxruntime"] == onnxruntime.__version__
    assert parts["placement"]["checks"]["no copies between devices"] is True
    assert "## placement\n\nas expected" in printed
    assert "| encoder | CPUExecutionProvider | 0 |" in printed


def test_a_part_that_finds_something_wrong_is_named_and_exit_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [Part(each.__name__, each, 1.0) for each in (behaviours.is_not_so, behaviours.fails)]
    monkeypatch.setattr(gpu_parts, "parts", lambda sizes, chosen=None: wrong)
    out = tmp_path / "gpu.json"
    assert gpu.main(["--device", "cpu", "--data", str(PAIRS), "--work", str(tmp_path), "--json", str(out)]) == 1
    printed = capsys.readouterr().out
    assert "NOT SO: the same tokens" in printed
    assert printed.endswith("failed: is_not_so, fails\n")
    assert json.loads(out.read_text())["parts"]["fails"]["error"] == "RuntimeError: no memory"


def test_without_the_device_nothing_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_parts, "LIBRARIES", Part("misses", behaviours.misses, 1000.0))
    assert gpu.main(["--device", "cpu", "--data", str(PAIRS)]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "python -m bench.gpu: no driver\n")
