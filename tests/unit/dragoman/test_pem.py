"""Files that gRPC would take and then only fail to connect with."""

import codecs
from pathlib import Path

import pytest

from dragoman.pem import check_authorities, check_pair
from tests.certificates import Authority, Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path)
    files.write(Authority().issue())
    return files


def test_a_pair_and_its_authority_are_good(tmp_path: Path) -> None:
    authority, files = Authority(), Files(tmp_path)
    files.write(authority.issue())
    check_pair(files.certificate, files.key)
    check_authorities(files.client_ca, authority.pem)


def test_the_key_of_another_certificate_is_named(files: Files) -> None:
    files.key.write_bytes(Authority().issue()[1])
    said = f"{files.certificate} and {files.key} are not a certificate and its key: the key is of another certificate"
    with pytest.raises(OSError, match=f"^{said}$"):
        check_pair(files.certificate, files.key)


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff\x00"])
def test_what_is_not_pem_is_named(files: Files, content: bytes) -> None:
    files.certificate.write_bytes(content)
    with pytest.raises(OSError, match="are not a certificate and its key: "):
        check_pair(files.certificate, files.key)
    with pytest.raises(OSError, match=f"{files.client_ca}: no certificates of authorities in PEM"):
        check_authorities(files.client_ca, content)


def test_a_missing_file_is_named(files: Files) -> None:
    files.key.unlink()
    with pytest.raises(OSError, match=r"tls\.key.*No such file"):
        check_pair(files.certificate, files.key)


@pytest.mark.parametrize("before", [b"", b"-----BEGIN CERTIFICATE-----\nof another\n-----END CERTIFICATE-----\n"])
def test_a_byte_order_mark_before_pem_is_named(files: Files, before: bytes) -> None:
    said = r"a byte order mark \(U\+FEFF\) before -----BEGIN"
    marked = before + codecs.BOM_UTF8 + files.certificate.read_bytes()
    with pytest.raises(OSError, match=f"^{files.client_ca}: {said}"):
        check_authorities(files.client_ca, marked)
    files.key.write_bytes(codecs.BOM_UTF8 + files.key.read_bytes())
    with pytest.raises(OSError, match=f"^{files.key}: {said}"):
        check_pair(files.certificate, files.key)


def test_comments_may_have_any_bytes(files: Files) -> None:
    check_authorities(files.client_ca, codecs.BOM_UTF8 + b"# \xe4\n" + files.certificate.read_bytes())
