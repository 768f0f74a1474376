"""What is installed, and what a serving install does not need."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SERVER, CLIENT = (
    tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (ROOT, ROOT / "dragoman")
)
RELEASED = ("requires-python", "license", "license-files", "authors", "version")


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[; ]", requirement)[0] for requirement in requirements}


def test_the_server_needs_the_client_of_its_own_version() -> None:
    assert {field: CLIENT[field] for field in RELEASED} == {field: SERVER[field] for field in RELEASED}
    assert f"dragoman[bundles]=={CLIENT['version']}" in SERVER["dependencies"]


@pytest.mark.parametrize("name", SERVER["license-files"])
def test_the_client_has_its_own_copy_of_the_licence(name: str) -> None:
    copy = ROOT / "dragoman" / name  # an archive would hold a link as such, to a file that it lacks
    assert not copy.is_symlink()
    assert copy.read_bytes() == (ROOT / name).read_bytes()


def test_both_are_for_the_same_versions_of_python() -> None:
    of_client, of_server = (
        {name for name in project["classifiers"] if "Python" in name} for project in (CLIENT, SERVER)
    )
    assert of_client == of_server
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= of_server


def test_each_package_of_the_repository_is_in_one_of_them() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")} - {"docs", "tests"}
    assert packages == {"dragoman", "dragoman_server", *build["targets"]["wheel"]["sources"]} - {"models"}
    assert packages - {"dragoman"} <= set(build["only-include"])


def test_images_that_install_the_needs_of_the_server_have_those_of_bundles() -> None:
    assert set(CLIENT["optional-dependencies"]["bundles"]) <= set(SERVER["dependencies"])


def test_no_package_is_called_proto() -> None:
    # proto-plus, which many gRPC clients install, owns that import name.
    assert list((ROOT / "proto").rglob("__init__.py")) == []


def test_serving_installs_neither_torch_nor_onnx() -> None:
    extras = SERVER["optional-dependencies"]
    serving = _names(SERVER["dependencies"]) | _names(extras["cpu"])
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
