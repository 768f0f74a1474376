import pytest

from service.callers import identify


class Peer:
    def __init__(self, peer: str) -> None:
        self._peer = peer

    def peer(self) -> str:
        return self._peer


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ipv4:192.0.2.7:40000", "ipv4:192.0.2.7:40001", True),
        ("ipv4:192.0.2.7:40000", "ipv4:192.0.2.8:40000", False),
        ("ipv6:%5B::1%5D:40000", "ipv6:%5B::1%5D:40001", True),
        ("ipv6:%5B::1%5D:40000", "ipv6:%5B::2%5D:40000", False),
        ("unix:", "unix:", True),
    ],
)
def test_the_port_does_not_tell_callers_apart_but_the_host_does(first: str, second: str, same: bool) -> None:
    assert (identify(Peer(first)) == identify(Peer(second))) is same
