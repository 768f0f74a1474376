"""Certificates for tests: authorities of our own, and what they sign."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


class Authority:
    """One authority; every certificate that it issues is another one."""

    def __init__(self, authority: trustme.CA | None = None) -> None:
        self._authority = authority or trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.pem: bytes = self._authority.cert_pem.bytes()

    def intermediate(self) -> "Authority":
        """Gives an authority that this one vouches for."""
        return Authority(self._authority.create_child_ca(trustme.KeyType.ECDSA))

    def issue(self, *names: str) -> tuple[bytes, bytes]:
        """Gives a certificate for these names, else for this host, and its key."""
        issued = self._authority.issue_cert(*(names or ("localhost", "127.0.0.1")), key_type=trustme.KeyType.ECDSA)
        return b"".join(blob.bytes() for blob in issued.cert_chain_pems), issued.private_key_pem.bytes()

    def channel_credentials(self, client: tuple[bytes, bytes] | None = None) -> grpc.ChannelCredentials:
        """Credentials of a client that trusts this authority, and has a certificate or none."""
        certificate, key = client or (None, None)
        return grpc.ssl_channel_credentials(self.pem, key, certificate)


class Files:
    """The files of a server's settings."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key, self.client_ca = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"

    def write(self, pair: tuple[bytes, bytes]) -> None:
        self.certificate.write_bytes(pair[0])
        self.key.write_bytes(pair[1])


def for_openssl_only() -> tuple[bytes, bytes]:
    """Gives a certificate for this host and its key, on a curve that gRPC does not know."""
    key, name, now = generate_private_key(SECP256K1()), x509.Name([]), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=True)
        .sign(key, SHA256())
    )
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), written
