import json
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from bench.gpu import __main__ as gpu
from tests.synthetic import Synthetic
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
    assert gpu.main(["--device", "cpu", "--data", str(tmp_path / "none.tsv")]) == 2
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
    work, out, table = tmp_path / "work", tmp_path / "gpu.json", tmp_path / "gpu.md"
    (work / "default").mkdir(parents=True)
    (work / "default" / "bundle-fp16").symlink_to(fp32.bundle.path)
    files = ["--data", str(PAIRS), "--work", str(work), "--json", str(out), "--markdown", str(table)]
    assert gpu.main(["--device", "cpu", "--parts", "placement", *files]) == 0
    assert "all parts ran, all as expected" in capsys.readouterr().out
    parts = json.loads(out.read_text())["parts"]
    assert list(parts) == ["libraries", "placement", "model default fp16"]
    assert parts["libraries"]["onnxruntime"] == onnxruntime.__version__
    assert parts["placement"]["checks"]["no copies between devices"] is True
    assert "| placement |" in table.read_text()
