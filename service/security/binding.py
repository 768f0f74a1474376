"""Sockets bound to an address."""

import errno
import socket

from dragoman.address import Address
from service.security.exposure import cannot_listen, places


def bound(address: Address, *, shared: bool = False) -> list[socket.socket]:
    """Bind a socket to each place that the host stands for and this machine has, all with one port.

    Args:
        address: port 0: any free port.
        shared: other sockets of this user may have the port too, as long as they are shared as well.

    Raises:
        OSError: there is no such place, or one is taken.
    """
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, kind, protocol, _, place in places(address):
        one = socket.socket(family, kind, protocol)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            port = sockets[0].getsockname()[1] if sockets else place[1]
            one.bind((place[0], port, *place[2:]))
            sockets.append(one)
        except OSError as error:
            one.close()
            failure = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    else:
        if sockets:
            return sockets
    for one in sockets:
        one.close()
    assert failure is not None
    raise cannot_listen(address, failure) from failure
