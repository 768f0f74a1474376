import pytest

from service.security.hosts import host_of, host_of_peer


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_a_host_is_an_address_or_a_network(address: str, host: str) -> None:
    assert host_of(address) == host


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:192.0.2.7:40000", "ipv4:192.0.2.7"),
        ("ipv6:%5B::ffff:192.0.2.7%5D:40000", "ipv4:192.0.2.7"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:40000", "ipv6:2001:db8:1:2::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:40000", "ipv6:fe80::/64"),
        ("unix:/run/dragoman.sock", "unix:/run/dragoman.sock"),
        ("unix:", "unix:"),
    ],
)
def test_the_host_of_a_peer_is_that_of_its_address(peer: str, host: str) -> None:
    assert host_of_peer(peer) == host
