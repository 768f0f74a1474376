"""The processor that a figure comes from: its name, and the instructions that its 8-bit products are made of."""

import platform
from pathlib import Path
from typing import Final

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


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name and instructions, such as "Intel(R) Xeon(R) Processor (AVX2, AVX-512, AVX-512 VNNI, AMX)".

    Args:
        cpuinfo: of Linux; elsewhere there is only a name.
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
