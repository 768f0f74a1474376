"""An address in the form host:port: for a server, where it listens; for a client, where it connects."""

import ipaddress
import re
from typing import NamedTuple

_LABEL = re.compile(rb"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_GRPC_SCHEMES = ("dns:", "ipv4:", "ipv6:", "passthrough:", "unix:", "unix-abstract:", "vsock:", "xds:")
_HOST_BYTES = 253  # of a whole host name, by RFC 1035


class Address(NamedTuple):
    """A host and a port.

    Attributes:
        host: a name, an IPv4 address, or an IPv6 address without brackets.
        port: for a server, 0 lets the system choose a free one.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read `host:port`; an IPv6 address as the host stands in brackets.

        Raises:
            ValueError: the text has another form, the host name is impossible, or the port is above 65535.
        """
        if "://" in text:
            raise ValueError(f"must be host:port, without {text.partition('://')[0]}://")
        match = re.fullmatch(r"(?:\[([0-9a-fA-F:.%\w]+)\]|([^:\s\[\]]+)):(\d{1,5})", text)
        if match is None or int(match[3]) > 65535:
            raise ValueError("must be host:port with a port up to 65535")
        if match[2] == "*":
            raise ValueError("must be host:port; the host for all addresses of this machine is 0.0.0.0 or [::]")
        if not (_is_ipv6(match[1]) if match[1] else _is_name(match[2])):
            raise ValueError("must be host:port with a valid name or IP address as the host")
        return cls(match[1] or match[2], int(match[3]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_target(text: str) -> None:
    """Check the address of a server for a client: `host:port`, or another gRPC target such as `unix:/path`.

    Raises:
        ValueError: the text has another form.
    """
    if not text.startswith(_GRPC_SCHEMES):
        Address.parse(text)


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_name(host: str) -> bool:
    """Tell whether a host name or IPv4 address can be looked up: the socket module raises UnicodeError for others."""
    try:
        encoded = host.encode("idna").removesuffix(b".")
    except UnicodeError:
        return False
    return len(encoded) <= _HOST_BYTES and all(map(_LABEL.fullmatch, encoded.split(b".")))
