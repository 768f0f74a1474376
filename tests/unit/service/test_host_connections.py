import pytest

from service.host_connections import host_of


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
