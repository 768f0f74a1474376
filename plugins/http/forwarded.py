"""Clients behind proxies: what X-Forwarded-For and X-Forwarded-Proto say is believed of a trusted proxy only."""

import ipaddress
from collections.abc import Iterable

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    """The networks of proxies that tell the truth.

    Args:
        networks: such as "10.0.0.0/8"; none: no proxy is trusted.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(network) for network in networks]

    def __contains__(self, host: str) -> bool:
        """Whether a numeric address is that of a trusted proxy."""
        return bool(self._networks) and (address := _address(host)) is not None and self._trusts(address)

    def client(self, host: str, forwarded: Iterable[str]) -> str:
        """Give the address of the client itself.

        Each proxy appends the address that it was called from. So the last one that is not a trusted proxy's is the
        client, and what stands before it may be the client's own invention.

        Args:
            host: the numeric address that the connection comes from.
            forwarded: the values of X-Forwarded-For, in the order of the headers.
        """
        if host not in self:
            return host
        client = host
        for part in reversed(",".join(forwarded).split(",")):
            address = _address(part)
            if address is None:
                return client
            client = str(address)
            if not self._trusts(address):
                return client
        return client

    def scheme(self, host: str, own: str, forwarded: str) -> str:
        """Give the scheme by which a client calls: "http" or "https".

        Args:
            host: the numeric address that the connection comes from.
            forwarded: the value of X-Forwarded-Proto; "": there is none.
        """
        told = forwarded.partition(",")[0].strip().lower()
        return told if host in self and told in ("http", "https") else own

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _address(text: str) -> _Address | None:
    """Read an address, of which IPv4 is the same within IPv6; None where it is none."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
