"""What this process has allocated from the C library. Linux with glibc only."""

import ctypes


class _Mallinfo2(ctypes.Structure):
    """What glibc tells of its allocator, in bytes or pieces."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def allocated_mib() -> float:
    """Return the mebibytes that are allocated and not given back; whether they were written to does not matter."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    told = mallinfo2()
    return float(told.uordblks + told.hblkhd) / 2**20
