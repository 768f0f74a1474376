import codecs
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from plugins.access import tls
from service.settings import Settings, SettingsError, load
from service.telemetry.metrics import Metrics
from tests.certificates import Authority, Files, for_openssl_only


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> Files:
    files = Files(tmp_path)
    files.write(authority.issue())
    files.client_ca.write_bytes(authority.pem)
    return files


def certificates(files: Files) -> tls.Certificates:
    settings = Settings(
        tls_certificate=str(files.certificate), tls_key=str(files.key), tls_client_ca=str(files.client_ca)
    )
    found = tls.certificates(settings, Metrics())
    assert found is not None
    return found


def encrypted(key: bytes) -> bytes:
    private = load_pem_private_key(key, None)
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))


def test_calls_come_in_plain_text_unless_there_is_a_certificate() -> None:
    assert tls.certificates(Settings(), Metrics()) is None


def test_a_pair_that_matches_is_taken(files) -> None:
    assert certificates(files).value is not None


@pytest.mark.parametrize("broken", ["certificate", "key", "client_ca"])
@pytest.mark.parametrize("how", ["half", "empty", "text", "bytes", "missing"])
def test_a_broken_file_is_named_in_one_line(files, broken: str, how: str) -> None:
    path: Path = getattr(files, broken)
    content = path.read_bytes()
    path.write_bytes({"half": content[: len(content) // 2], "text": b"hello", "bytes": b"\xff\0" * 99}.get(how, b""))
    if how == "missing":
        path.unlink()
    with pytest.raises(SettingsError) as caught:
        certificates(files)
    assert str(path) in str(caught.value)
    assert str(caught.value).startswith("--tls-certificate, --tls-key, --tls-client-ca: ")
    assert "\n" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused(files, authority) -> None:
    files.key.write_bytes(authority.issue()[1])
    with pytest.raises(SettingsError, match="not a certificate and its key"):
        certificates(files)


def test_a_key_under_a_password_is_refused_and_nobody_is_asked_for_it(files) -> None:
    files.key.write_bytes(encrypted(files.key.read_bytes()))
    with pytest.raises(SettingsError, match="not a certificate and its key"):
        certificates(files)


def test_a_pair_that_only_openssl_knows_is_refused(files) -> None:
    found = certificates(files)
    first = found.value
    files.write(for_openssl_only())
    found.refresh()
    assert found.value is first
    with pytest.raises(SettingsError, match=f"{files.certificate}, {files.key}.*: gRPC cannot use them"):
        certificates(files)


@pytest.mark.parametrize("marked", ["certificate", "key", "client_ca"])
def test_a_byte_order_mark_is_named(files, marked: str) -> None:
    path: Path = getattr(files, marked)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    with pytest.raises(SettingsError, match=rf"{path}: a byte order mark \(U\+FEFF\)"):
        certificates(files)


def test_comments_of_authorities_may_have_any_letters(files) -> None:
    files.client_ca.write_bytes("# Zertifizierungsstelle für Gäste\n".encode() + files.client_ca.read_bytes())
    assert certificates(files).for_http().get_ca_certs()


def test_an_authority_need_not_be_the_root(files, authority) -> None:
    between = authority.intermediate()
    files.client_ca.write_bytes(between.pem)
    client = ssl.create_default_context(cadata=authority.pem.decode())
    own = Files(files.key.parent / "client")
    own.certificate.parent.mkdir()
    own.write(between.issue())
    client.load_cert_chain(own.certificate, own.key)
    shake_hands(certificates(files).for_http(), client)


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Agree on TLS in memory; raises the error of either side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    ]
    while sides:
        for side in [*reversed(sides)]:
            try:
                side.do_handshake()
                sides.remove(side)
            except ssl.SSLWantReadError:
                pass


def test_a_broken_change_keeps_what_there_was(files, authority) -> None:
    found = certificates(files)
    first = found.value
    pair = authority.issue()
    files.certificate.write_bytes(pair[0])
    found.refresh()
    assert found.value is first
    files.key.write_bytes(pair[1])
    found.refresh()
    assert found.value is not first


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"tls_certificate": "a"}, "tls_key"),
        ({"tls_key": "a"}, "tls_key"),
        ({"tls_client_ca": "a"}, "tls_client_ca"),
    ],
)
def test_settings_of_tls_come_together(given, problem) -> None:
    with pytest.raises(SettingsError, match=f"--{problem.replace('_', '-')}.*--tls-certificate"):
        load(given)
