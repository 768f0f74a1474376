import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.http.forwarded import TrustedProxies

PROXIES = TrustedProxies(["10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize(
    ("host", "forwarded", "client"),
    [
        ("203.0.113.1", ["198.51.100.7"], "203.0.113.1"),  # not by a proxy of ours
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7"], "198.51.100.7"),  # the first is what the client itself wrote
        ("10.0.0.1", ["1.1.1.1, 198.51.100.7, 10.0.0.2"], "198.51.100.7"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.7"], "198.51.100.7"),
        ("10.0.0.1", ["10.0.0.9, 10.0.0.2"], "10.0.0.9"),
        ("10.0.0.1", ["nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.7, nonsense, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.7:4711"], "10.0.0.1"),
        ("fd00::1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:10.0.0.1", ["198.51.100.7"], "198.51.100.7"),
    ],
)
def test_the_last_address_that_is_no_proxy_is_the_client(host: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client(host, forwarded) == client


@pytest.mark.parametrize(
    ("host", "forwarded", "scheme"),
    [
        ("10.0.0.1", "https", "https"),
        ("10.0.0.1", "HTTPS, http", "https"),
        ("10.0.0.1", "", "http"),
        ("10.0.0.1", "javascript", "http"),
        ("203.0.113.1", "https", "http"),  # not by a proxy of ours
    ],
)
def test_a_proxy_says_by_which_scheme_it_was_called(host: str, forwarded: str, scheme: str) -> None:
    assert PROXIES.scheme(host, "http", forwarded) == scheme


@given(st.lists(st.text()))
def test_nobody_is_believed_where_no_proxy_is_trusted(forwarded: list[str]) -> None:
    assert TrustedProxies([]).client("10.0.0.1", forwarded) == "10.0.0.1"
    assert PROXIES.client("203.0.113.1", forwarded) == "203.0.113.1"


@given(st.lists(st.text()), st.ip_addresses(v=4).filter(lambda address: not str(address).startswith("10.")))
def test_nothing_that_a_client_writes_hides_its_address(written: list[str], address: object) -> None:
    assert PROXIES.client("10.0.0.1", [*written, str(address)]) == str(address)
