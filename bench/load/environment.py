"""Where a load was made: what a reader needs to know before comparing it with another."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import grpc


def describe_environment() -> dict[str, str | int]:
    """The generator's machine and programs; the server may run elsewhere."""
    return {
        "dragoman": version("dragoman"),
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())
