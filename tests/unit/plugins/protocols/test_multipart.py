from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequestError
from plugins.protocols.multipart import File, read

TYPE = 'multipart/form-data; boundary="--x"'


def part(disposition: str, content: bytes, *headers: str) -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"Content-Disposition: form-data{disposition}", *headers))
    return b"----x\r\n" + head.encode() + b"\r\n" + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"----x--\r\n"


def test_fields_and_files_come_in_their_order() -> None:
    body = form(
        part('; name="q"', "Grüße".encode()),
        part('; name="file"; filename="Übung \\"1\\".txt"', b"\r\n--x\r\n", "Content-Type: text/plain"),
        part("; name=q", b""),
        part('; name="none"; filename=""', b""),
    )
    file = File('Übung "1".txt', b"\r\n--x\r\n")
    assert read(body, TYPE, 9) == [("q", "Grüße"), ("file", file), ("q", ""), ("none", File("", b""))]


@pytest.mark.parametrize("name", ["c.txt", "/c.txt", "a/b/c.txt", "../../c.txt"])
def test_the_name_of_a_file_has_no_path(name: str) -> None:
    body = form(part(f'; name="f"; filename="{name}"', b""))
    assert read(body, TYPE, 1) == [("f", File("c.txt", b""))]


@given(st.binary(max_size=200))
def test_any_file_comes_whole(content: bytes) -> None:
    if b"----x" not in content:
        assert read(form(part('; name="f"; filename="a"', content)), TYPE, 1) == [("f", File("a", content))]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"", TYPE, "ends before"),
        (form(part('; name="a"', b"b"))[:-6], TYPE, "ends before"),
        (form(part('; name="a"', b"b")), "multipart/form-data", "needs a boundary"),
        (form(part('; name="a"', b"b")), 'multipart/form-data; boundary="y"', "is no multipart"),
        (form(part("", b"b")), TYPE, "a part has no name"),
        (form(part('; name="a"', b"\xff")), TYPE, "a: is not UTF-8, at byte 0"),
        (form(part('; name="a"', b"b", *["x: y"] * 9)), TYPE, "is no multipart"),
        (form(part('; name="a"', b"b", "x: " + "y" * 5000)), TYPE, "is no multipart"),
        (form(*[part('; name="a"', b"b")] * 4), TYPE, "at most 3 parameters"),
        (b"\x00" * 100, TYPE, "is no multipart"),
    ],
)
def test_what_is_no_form_is_one_clear_error(body: bytes, kind: str, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        read(body, kind, 3)


@given(st.binary(max_size=300), st.text(st.characters(max_codepoint=255), max_size=30))
def test_bytes_of_strangers_are_a_form_or_an_error(body: bytes, kind: str) -> None:
    for content in (body, form(body), form(part('; name="a"', body))):
        for header in (TYPE, f"multipart/form-data; {kind}"):
            with suppress(InvalidRequestError):
                assert all(isinstance(name, str) for name, _ in read(content, header, 3))
