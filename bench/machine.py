"""Where and when a figure was taken: the machine, the versions of what ran on it, the date."""

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from service import cores

# Flags of Linux, and what they are called; without VNNI a product of bytes takes twice the instructions.
_INSTRUCTIONS: Final = {
    "avx2": "AVX2",
    "avx512f": "AVX-512",
    "avx_vnni": "AVX-VNNI",
    "avx512_vnni": "AVX-512 VNNI",
    "amx_int8": "AMX",
    "asimddp": "dot product",
    "i8mm": "I8MM",
}


def environment() -> dict[str, str | int]:
    """Return where a figure is taken, ready for JSON; a server under load may run elsewhere."""
    return {
        "dragoman": version("dragoman"),
        "grpcio": version("grpcio"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "processor": processor(),
        "cores": cores.available(),
    }


def now() -> str:
    """Return the date and the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def installed(package: str) -> str | None:
    """Return the version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the name of the processor, and the instructions that its 8-bit products are made of.

    Such as "Intel(R) Xeon(R) Processor (AVX2, AVX-512, AVX-512 VNNI, AMX)".
    """
    try:
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    known = ", ".join(name for flag, name in _INSTRUCTIONS.items() if flag in flags)
    name = fields.get("model name") or platform.machine()
    return f"{name} ({known})" if known else name
