"""The host of a connection, by which limits and turns are counted where callers have no API keys."""

import ipaddress
from functools import lru_cache
from urllib.parse import unquote


def host_of(address: str) -> str:
    """Name the host of a numeric address: an IPv4 address, also one within IPv6, or the first 64 bits of IPv6."""
    numeric = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(numeric, ipaddress.IPv4Address):
        return str(numeric)
    if numeric.ipv4_mapped is not None:
        return str(numeric.ipv4_mapped)
    return str(ipaddress.ip_network((numeric, 64), strict=False))


@lru_cache(maxsize=4096)  # needed at every call, and the same for all calls of a connection
def host_of_peer(peer: str) -> str:
    """Name the host of a caller, with its family.

    Args:
        peer: as gRPC names it: "ipv4:192.0.2.7:40000", "ipv6:%5B2001:db8::1%5D:40000", "unix:...".
    """
    family, _, place = peer.partition(":")
    if family != "ipv6":  # an IPv4 address needs no parsing, and a Unix socket has no address
        return f"{family}:{place.rpartition(':')[0] or place}"
    host = host_of(unquote(place.rpartition(":")[0]).strip("[]"))
    return f"{family if ':' in host else 'ipv4'}:{host}"
