"""The last moment of a listening socket."""

import socket
import struct
from array import array
from contextlib import suppress
from typing import Final

_SO_ATTACH_FILTER: Final = 26  # of Linux, socket(7); Python has no name for it
# Instructions of BPF: load the flags of the TCP header; is SYN among them? then keep no byte of the packet, else all.
_INSTRUCTIONS: Final = ((0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))


def drop_requests(listening: socket.socket) -> None:
    """Make the kernel drop requests for new connections, which clients repeat; those that have begun go on.

    Otherwise a connection made after the last one is accepted, and before the socket is closed, would be reset.
    """
    program = array("B", b"".join(struct.pack("HBBI", *one) for one in _INSTRUCTIONS))
    address, _ = program.buffer_info()
    with suppress(OSError):  # a kernel without filters
        listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", len(_INSTRUCTIONS), address))
