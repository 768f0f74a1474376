"""The sockets of this process, found among its descriptors, since gRPC does not expose its own. Linux only."""

import ctypes
import os
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

DESCRIPTORS: Final = Path("/proc/self/fd")
_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_ATTACH_FILTER: Final = 26  # SO_ATTACH_FILTER of asm-generic/socket.h; Python has no name for it
# From linux/filter.h: a program of one instruction, "return 0", drops every packet.
_DROP_ALL: Final = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\0\0")


class _Program(ctypes.Structure):
    """A program of the Berkeley Packet Filter, `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def by_inode(names: Iterable[str]) -> dict[int, int]:
    """Find sockets; the oldest descriptors first.

    Args:
        names: descriptor numbers, as listed in `DESCRIPTORS`.

    Returns:
        The descriptor of each socket by its inode, which identifies the socket for its lifetime.
    """
    found: dict[int, int] = {}
    for descriptor in sorted(map(int, names)):
        with suppress(OSError):  # closed in the meantime
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode):
                found[status.st_ino] = descriptor
    return found


def peer(descriptor: int, port: int) -> str:
    """Give the peer address of a connection to a port of this process; "" for any other socket."""
    with suppress(OSError, ValueError), _copy(descriptor) as copy:
        if copy.family in _INTERNET and copy.getsockname()[1] == port:
            return str(copy.getpeername()[0])
    return ""


def end(descriptor: int, inode: int, how: int = socket.SHUT_RDWR) -> bool:
    """End a connection, which gRPC then cleans up; False if the descriptor now belongs to another socket.

    Args:
        how: `SHUT_RD` lets outgoing data finish.
    """
    with suppress(OSError), _copy(descriptor) as copy:
        if os.fstat(copy.fileno()).st_ino == inode:
            copy.shutdown(how)
            return True
    return False


def connections(port: int) -> dict[int, int]:
    """Find the connections to a port of this process: their descriptors by inode."""
    found = by_inode(os.listdir(DESCRIPTORS))
    return {inode: descriptor for inode, descriptor in found.items() if peer(descriptor, port)}


def refuse_connections(port: int) -> None:
    """Stop accepting new connections to a port of this process: to a client this looks like a slow network.

    Closing the listening socket would reset connections that have begun and are not yet accepted.
    """
    for descriptor in by_inode(os.listdir(DESCRIPTORS)).values():
        with suppress(OSError, ValueError), _copy(descriptor) as copy:
            is_ours = copy.family in _INTERNET and copy.getsockname()[1] == port
            if is_ours and copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                program = _Program(1, ctypes.cast(_DROP_ALL, ctypes.c_void_p))
                copy.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, bytes(program))


@contextmanager
def _copy(descriptor: int) -> Iterator[socket.socket]:
    """Give a socket on a duplicate of the descriptor, which is closed afterwards."""
    with closing(socket.socket(fileno=os.dup(descriptor))) as copy:
        yield copy
