import socket

import pytest
from structlog.testing import capture_logs

from service.rpc.listener import Listener
from service.security.access import access_of
from service.settings import Settings
from service.telemetry.metrics import Metrics
from tests.certificates import Authority, Files

OPEN = "open to other machines"


async def warnings(settings: Settings) -> list[str]:
    with capture_logs() as log:
        metrics = Metrics()
        async with Listener(settings, metrics, access_of(settings, metrics), lambda server: None).listening():
            pass
    return [entry["event"] for entry in log if entry["log_level"] == "warning"]


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "127.1.2.3:0"])
async def test_loopback_needs_no_guard(address: str) -> None:
    assert await warnings(Settings(address=address)) == []


async def test_elsewhere_what_is_missing_is_said_loudly(tmp_path) -> None:
    authority = Authority()
    files = Files(tmp_path)
    files.write(authority.issue())
    files.client_ca.write_bytes(authority.pem)
    keys = tmp_path / "keys.toml"
    keys.write_text(f'a = {{ sha256 = "{"0" * 64}" }}')
    certificate = {"tls_certificate": str(files.certificate), "tls_key": str(files.key)}
    guards = {
        (): {},
        ("TLS",): certificate,
        ("keys",): {"api_keys": str(keys)},
        ("TLS", "keys"): {**certificate, "tls_client_ca": str(files.client_ca)},
    }
    for guarded, given in guards.items():
        said = await warnings(Settings(address="0.0.0.0:0", **given))
        assert any("without TLS" in line for line in said) is ("TLS" not in guarded)
        assert any("without API keys" in line for line in said) is ("keys" not in guarded)


async def test_a_taken_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=rf"cannot listen on {address} \(--address\): Address already in use"):
            await warnings(Settings(address=address))


async def test_an_unknown_host_is_named() -> None:
    with pytest.raises(OSError, match=r"cannot listen on no\.such\.host\.invalid:1 \(--address\): "):
        await warnings(Settings(address="no.such.host.invalid:1"))
