"""Clients behind proxies: X-Forwarded-For and X-Forwarded-Proto are used only if they come from a trusted proxy."""

import ipaddress
from collections.abc import Iterable

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class TrustedProxies:
    """The networks of trusted proxies.

    Args:
        networks: networks such as "10.0.0.0/8"; empty: no proxy is trusted.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(network) for network in networks]

    def __contains__(self, host: str) -> bool:
        """Whether a numeric address is that of a trusted proxy."""
        return bool(self._networks) and (address := _address(host)) is not None and self._trusts(address)

    def client(self, host: str, forwarded: Iterable[str]) -> str:
        """Give the address of the client.

        Each proxy appends the address of its peer. So the last address that is not a trusted proxy's is the client's;
        the client may have invented all addresses before it.

        Args:
            host: the numeric address of the connection's peer.
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
        """Give the scheme that the client used: "http" or "https".

        Args:
            host: the numeric address of the connection's peer.
            forwarded: the value of X-Forwarded-Proto; "": not sent.
        """
        told = forwarded.partition(",")[0].strip().lower()
        return told if host in self and told in ("http", "https") else own

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def _address(text: str) -> _Address | None:
    """Parse an address; an IPv4 address inside an IPv6 one becomes IPv4; None for other text."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address
