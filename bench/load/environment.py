"""Where a load was made: what a reader needs to know before comparing it with another."""

import os
import platform
from importlib.metadata import version

import grpc

from bench.processor import processor


def describe_environment() -> dict[str, str | int]:
    """The generator's machine and programs; the server may run elsewhere."""
    return {
        "dragoman": version("dragoman"),
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
