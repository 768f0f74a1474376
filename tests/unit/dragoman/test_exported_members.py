import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import dragoman
import dragoman.errors

HEAVY = [
    "numpy",
    "pydantic",
    "sentencepiece",
    "prometheus_client",
    "structlog",
    "torch",
    "onnx",
    "onnxruntime",
]


def test_all_is_what_the_package_defines() -> None:
    assert sorted(dragoman.__all__) == dragoman.__all__ == dir(dragoman)
    assert all(getattr(dragoman, name).__module__.startswith("dragoman.") for name in dragoman.__all__)
    with pytest.raises(AttributeError):
        _ = dragoman.no_such_name


def test_the_command_line_is_imported_without_grpc() -> None:
    program = "import dragoman.cli, sys; print('grpc' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "False"


def test_every_error_is_exported() -> None:
    errors = {
        name
        for name, kind in inspect.getmembers(dragoman.errors, inspect.isclass)
        if issubclass(kind, dragoman.DragomanError)
    }
    assert errors <= set(dragoman.__all__)


def test_the_version_is_that_of_the_distribution() -> None:
    assert dragoman.__version__ == version("dragoman")


def test_the_client_needs_only_grpc_and_protobuf() -> None:
    program = f"from dragoman import Client; import sys; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
