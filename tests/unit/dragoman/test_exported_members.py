import inspect
import subprocess
import sys

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
    public = {
        name for name, value in vars(dragoman).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert sorted(public) == dragoman.__all__


def test_every_error_is_exported() -> None:
    errors = {
        name
        for name, kind in inspect.getmembers(dragoman.errors, inspect.isclass)
        if issubclass(kind, dragoman.DragomanError)
    }
    assert errors <= set(dragoman.__all__)


def test_the_client_needs_only_grpc_and_protobuf() -> None:
    program = f"import dragoman, sys; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == "[]"
