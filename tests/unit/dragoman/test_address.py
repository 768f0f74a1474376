import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.address import Address

_LABEL = "[a-z0-9]([a-z0-9-]{0,5}[a-z0-9])?"


@given(st.from_regex(rf"{_LABEL}(\.{_LABEL}){{0,3}}", fullmatch=True), st.integers(0, 65535))
def test_round_trip(host: str, port: int) -> None:
    address = Address.parse(f"{host}:{port}")
    assert address == (host, port)
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize("host", ["::1", "fe80::1%eth0", "::"])
def test_ipv6_has_brackets(host: str) -> None:
    address = Address.parse(f"[{host}]:50051")
    assert address == (host, 50051)
    assert str(address) == f"[{host}]:50051"


@pytest.mark.parametrize("host", ["0.0.0.0", "my_service", "example.org.", "bücher.example", "a" * 63])
def test_hosts(host: str) -> None:
    assert Address.parse(f"{host}:1").host == host


@pytest.mark.parametrize("text", ["", ":1", "host", "host:", "host:x", "::1:50051", "a:b:1", "host:-1", "h :1"])
def test_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        Address.parse(text)


@pytest.mark.parametrize("host", ["a" * 64, "a..b", ".", "a.-b", "[1.2.3]", "[::1::]", ".".join(["abcdefgh"] * 30)])
def test_refuses_hosts_that_cannot_be(host: str) -> None:
    with pytest.raises(ValueError, match="must be host:port with a valid name or IP address"):
        Address.parse(f"{host}:1")


def test_a_star_has_another_name() -> None:
    with pytest.raises(ValueError, match=r"0\.0\.0\.0"):
        Address.parse("*:50051")


def test_an_url_is_no_address() -> None:
    with pytest.raises(ValueError, match="without http://"):
        Address.parse("http://localhost:50051")
