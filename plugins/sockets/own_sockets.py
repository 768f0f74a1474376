"""The sockets of this process, found among its descriptors: gRPC gives none of its own out. Linux only."""

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
_ATTACH_FILTER: Final = 26  # SO_ATTACH_FILTER of asm-generic/socket.h, which Python does not name
# Of linux/filter.h: a program of one instruction, "return 0", lets no packet through.
_DROP_ALL: Final = ctypes.create_string_buffer(b"\x06\0\0\0\0\0\0\0")


class _Program(ctypes.Structure):
    """A program of the Berkeley Packet Filter, `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def by_inode(names: Iterable[str]) -> dict[int, int]:
    """Find sockets; the oldest descriptors first.

    Args:
        names: of descriptors, as `DESCRIPTORS` lists them.

    Returns:
        The descriptor of each socket by its inode, which names a socket for good.
    """
    return dict(_sockets(sorted(map(int, names))))


def peer(descriptor: int, port: int) -> str:
    """Give the address that a connection to a port of ours comes from; "" for any other socket."""
    with suppress(OSError, ValueError), _copy(descriptor) as copy:
        if copy.family in _INTERNET and copy.getsockname()[1] == port:
            return str(copy.getpeername()[0])
    return ""


def end(descriptor: int, inode: int, how: int = socket.SHUT_RDWR) -> bool:
    """End a connection, which gRPC then cleans up; False where the descriptor is another's by now.

    Args:
        how: `SHUT_RD` leaves what is being sent.
    """
    with suppress(OSError), _copy(descriptor) as copy:
        if os.fstat(copy.fileno()).st_ino == inode:
            copy.shutdown(how)
            return True
    return False


def connections(port: int) -> dict[int, int]:
    """Find the connections to a port of ours: their descriptors by inode."""
    found = by_inode(os.listdir(DESCRIPTORS))
    return {inode: descriptor for inode, descriptor in found.items() if peer(descriptor, port)}


def refuse_connections(port: int) -> None:
    """Let no connection to a port of ours begin any more: for a client it is as if the network was slow.

    Closing the socket that listens would reset connections that have begun and were not accepted yet.
    """
    for descriptor in by_inode(os.listdir(DESCRIPTORS)).values():
        with suppress(OSError, ValueError), _copy(descriptor) as copy:
            if copy.family in _INTERNET and copy.getsockname()[1] == port and _listens(copy):
                program = _Program(1, ctypes.cast(_DROP_ALL, ctypes.c_void_p))
                copy.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, bytes(program))


def _listens(candidate: socket.socket) -> bool:
    return bool(candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def _sockets(descriptors: list[int]) -> Iterator[tuple[int, int]]:
    """Yield inode and descriptor of each that is a socket."""
    for descriptor in descriptors:
        with suppress(OSError):  # closed meanwhile
            status = os.fstat(descriptor)
            if stat.S_ISSOCK(status.st_mode):
                yield status.st_ino, descriptor


@contextmanager
def _copy(descriptor: int) -> Iterator[socket.socket]:
    """Give a socket by a descriptor of our own, which is closed afterwards."""
    with closing(socket.socket(fileno=os.dup(descriptor))) as copy:
        yield copy
