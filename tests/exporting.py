"""Torch's exporter in tests: without its remarks to its own developers, and its list of operators made once."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from torch.onnx._internal.exporter import _registration

# It is the same for every graph, and takes a quarter of the export of a small model.
_operators = cache(_registration.onnxscript_apis.get_torchlib_ops)


@contextmanager
def quick_and_quiet() -> Iterator[None]:
    """Export in the block."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setattr(_registration.onnxscript_apis, "get_torchlib_ops", _operators)
        warnings.simplefilter("ignore")
        yield
