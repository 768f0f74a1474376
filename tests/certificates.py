"""Certificates for tests: authorities of our own, and what they sign."""

from pathlib import Path

import grpc
import trustme


class Authority:
    """One authority; every certificate that it issues is another one."""

    def __init__(self) -> None:
        self._authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
        self.pem: bytes = self._authority.cert_pem.bytes()

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
