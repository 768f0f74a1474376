import ctypes.util

import onnxruntime
import pytest

from plugins.gpu import cuda


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="there is CUDA")
def test_an_onnxruntime_without_cuda_is_named() -> None:
    assert cuda.missing() == ("this onnxruntime has no CUDAExecutionProvider: install the extra gpu in place of cpu")


@pytest.mark.skipif(ctypes.util.find_library("cuda") is not None, reason="there is a driver")
def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "PROVIDER", "CPUExecutionProvider")
    assert cuda.missing() == "libcuda.so.1 is missing: there is no NVIDIA driver here"


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "PROVIDER", "CPUExecutionProvider")
    monkeypatch.setattr(cuda, "_DRIVER", "libc.so.6")
    monkeypatch.setattr(cuda, "_PROVIDER_LIBRARY", "libc.so.6")
    monkeypatch.setattr(cuda, "_CUDNN", "libnone.so.9")
    assert cuda.missing() == (
        "libnone.so.9 is missing, a library of CUDA or cuDNN: install the extra gpu in place of cpu"
    )


def test_libraries_that_are_there_are_loaded_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    cuda.preload()
    assert capfd.readouterr() == ("", "")
