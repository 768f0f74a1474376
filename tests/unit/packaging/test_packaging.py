"""What is installed, and what a serving install does not need."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[; ]", requirement)[0] for requirement in requirements}


def test_the_wheel_holds_our_rooms_and_nothing_else() -> None:
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert sorted(packages) == ["bench", "dragoman", "export", "model", "service"]
    assert all((ROOT / package / "__init__.py").is_file() for package in packages)


def test_no_package_is_called_proto() -> None:
    # proto-plus, which many gRPC clients install, owns that import name.
    assert list((ROOT / "proto").rglob("__init__.py")) == []


def test_serving_installs_neither_torch_nor_onnx() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    serving = _names(PROJECT["project"]["dependencies"]) | _names(extras["cpu"])
    assert "onnxruntime" in serving
    assert serving.isdisjoint({"torch", "onnx", "onnxscript", "safetensors", "transformers"})


@pytest.mark.parametrize("module", ["dragoman", "service.server", "service.commands.serve", "dragoman.bundle"])
def test_serving_imports_neither_torch_nor_onnx(module: str) -> None:
    code = f"import sys, {module}; print([name for name in ('torch', 'onnx', 'safetensors') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_the_client_needs_only_grpc_and_protobuf() -> None:
    others = ("numpy", "pydantic", "onnxruntime", "sentencepiece")
    code = f"import sys, dragoman; print([name for name in {others} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
