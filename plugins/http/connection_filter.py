"""The last moment of a listening socket."""

import socket
import struct
from array import array
from contextlib import suppress
from typing import Final

_SO_ATTACH_FILTER: Final = 26  # of Linux, socket(7); Python has no name for it
_DROP: Final = struct.pack("HBBI", 6, 0, 0, 0)  # an instruction of BPF: return the number of bytes to keep, 0


def drop_requests(listening: socket.socket) -> None:
    """Make the kernel drop requests for new connections, which clients repeat; the waiting connections stay.

    Otherwise a connection made after the last one is accepted, and before the socket is closed, would be reset.
    """
    program = array("B", _DROP)
    address, _ = program.buffer_info()
    with suppress(OSError):  # a kernel without filters
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, address))
