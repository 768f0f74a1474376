import io
import struct
import zipfile

import pytest

from dragoman.documents import archive
from dragoman.documents.archive import Archive
from tests.unit.dragoman.documents.made import zipped


def test_members_are_replaced_and_all_others_stay_in_order() -> None:
    written = Archive(zipped({"mimetype": "x", "a": "1", "b": "2"})).write({"a": b"new"})
    with zipfile.ZipFile(io.BytesIO(written)) as read:
        assert [(info.filename, read.read(info), info.compress_type) for info in read.infolist()] == [
            ("mimetype", b"x", zipfile.ZIP_STORED),
            ("a", b"new", zipfile.ZIP_DEFLATED),
            ("b", b"2", zipfile.ZIP_DEFLATED),
        ]


def test_bytes_are_counted_whatever_the_header_claims(monkeypatch) -> None:
    content = zipped({"bomb": b"\x00" * 3_000_000})
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000_000)
    with pytest.raises(ValueError, match="at most 1000000 bytes together"):
        Archive(content)
    lying = content.replace(struct.pack("<L", 3_000_000), struct.pack("<L", 1_000))
    with pytest.raises(ValueError, match="'bomb' cannot be read"):
        Archive(lying)


def test_members_are_counted_together(monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 10)
    assert Archive(zipped({"a": "12345", "b": "12345"})).names == ["a", "b"]
    with pytest.raises(ValueError, match="at most 10 bytes"):
        Archive(zipped({"a": "12345", "b": "123456"}))


def test_too_many_members_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBERS", 2)
    with pytest.raises(ValueError, match="at most 2 members, has 3"):
        Archive(zipped({"a": "", "b": "", "c": ""}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as out:
        out.writestr("a", "1")
        out.writestr("a", "2")
    with pytest.raises(ValueError, match="two members of one name"):
        Archive(stream.getvalue())


def test_a_broken_or_encrypted_member_is_refused() -> None:
    content = zipped({"a": "some text that is there"})
    with pytest.raises(ValueError, match="'a' cannot be read"):
        Archive(content[:34] + b"\xff" + content[35:])
    flags = content.index(b"PK\x01\x02") + 8
    encrypted = content[:6] + b"\x01" + content[7:flags] + b"\x01" + content[flags + 1 :]
    with pytest.raises(ValueError, match=r"'a' cannot be read: .*encrypted"):
        Archive(encrypted)
