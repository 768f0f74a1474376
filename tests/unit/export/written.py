"""Weights and graphs that a test writes and opens; nothing of them stays on the disk."""

import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from export.graph import Graph
from export.parameters import Parameters
from export.teacher import Teacher
from export.weights import WeightsFile
from model.config import TransformerConfig
from model.safetensors_file import SafetensorsWeights
from model.transformer import Transformer

CONFIG = TransformerConfig(source_vocabulary_size=9, target_vocabulary_size=9)
Write = Callable[[WeightsFile], Graph]


def session(write: Write) -> onnxruntime.InferenceSession:
    """Open a graph."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with TemporaryDirectory() as folder:
        return onnxruntime.InferenceSession(_saved(write, Path(folder)), options, providers=["CPUExecutionProvider"])


def content(write: Write) -> onnx.ModelProto:
    """Read a graph, with all of its constants."""
    with TemporaryDirectory() as folder:
        return onnx.load(_saved(write, Path(folder)))


def _saved(write: Write, folder: Path) -> Path:
    with WeightsFile(folder) as weights:
        write(weights).save(folder / "graph.onnx")
    return folder / "graph.onnx"


def taught(parameters: Parameters) -> Teacher:
    """Show a model whole sentences."""
    folder = TemporaryDirectory()
    with WeightsFile(Path(folder.name)) as weights:
        teacher = Teacher(parameters, Path(folder.name), weights)
    weakref.finalize(teacher, folder.cleanup)
    return teacher


def parameters(arrays: Mapping[str, NDArray[Any]], config: TransformerConfig = CONFIG) -> Parameters:
    """Give arrays as the weights of a checkpoint."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, file)
        return Parameters(config, SafetensorsWeights([file]))


@torch.no_grad()
def module(parameters: Parameters) -> Transformer:
    """Make a module of weights."""
    model = Transformer(parameters.config).eval()
    for name, parameter in model.named_parameters():
        parameter.copy_(torch.from_numpy(np.array(parameters.read(name), np.float32)))
    return model
