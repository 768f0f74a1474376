"""Forms with files, multipart/form-data: https://datatracker.ietf.org/doc/html/rfc7578."""

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from dragoman.errors import InvalidRequestError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

KIND: Final = "multipart/form-data"
# Headers of a part; usually two: its name and its type.
_MAX_HEADERS: Final = 8
_MAX_HEADER_BYTES: Final = 4_096
# The library warns of each invalid form; the client's error says the same.
logging.getLogger("python_multipart").setLevel(logging.ERROR)


class File(NamedTuple):
    """A file of a form.

    Attributes:
        name: the client's name of the file, without a path; "" if there is none.
        content: the content of the file.
    """

    name: str
    content: bytes


def read(body: bytes, content_type: str, max_parts: int, *, is_whole: bool = True) -> list[tuple[str, str | File]]:
    """Read the fields of a form, in their order: texts and files.

    Args:
        content_type: the content-type header, with the boundary of the parts.
        is_whole: False: the body is the beginning of a form, of which the complete fields are read.

    Raises:
        InvalidRequestError: the body is no such form, has too many parts, too large headers, or text that is not UTF-8.
    """
    boundary = parse_options_header(content_type)[1].get(b"boundary")
    if not boundary:
        raise InvalidRequestError(f"content-type: {KIND} needs a boundary")
    parts = _Parts(max_parts)
    try:
        parser = MultipartParser(
            boundary, parts.callbacks(), max_header_count=_MAX_HEADERS, max_header_size=_MAX_HEADER_BYTES
        )
        parser.write(body)
        if is_whole:
            parser.finalize()
    except FormParserError as error:
        raise InvalidRequestError(f"the body is no {KIND}: {str(error)[:200]}") from None
    if is_whole and not parts.complete:
        raise InvalidRequestError(f"the body is no {KIND}: it ends before its last boundary")
    return parts.fields


class _Parts:
    """Collects the output of the parser's callbacks.

    Attributes:
        fields: the complete fields.
        complete: whether the final boundary has been read.
    """

    def __init__(self, max_parts: int) -> None:
        self.fields: list[tuple[str, str | File]] = []
        self.complete = False
        self._max_parts = max_parts
        self._content: list[bytes] = []
        self._header = [b"", b""]  # name and value, read so far
        self._disposition: dict[bytes, bytes] = {}

    def callbacks(self) -> "MultipartCallbacks":
        """Give the callbacks for the parser."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._extend(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._extend(1, data[start:end]),
            "on_header_end": self._end_header,
            "on_part_data": lambda data, start, end: self._content.append(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._end_form,
        }

    def _begin(self) -> None:
        if len(self.fields) == self._max_parts:
            raise InvalidRequestError(f"there may be at most {self._max_parts} parameters")
        self._content, self._header, self._disposition = [], [b"", b""], {}

    def _extend(self, index: int, piece: bytes) -> None:
        self._header[index] += piece

    def _end_header(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = parse_options_header(value)[1]
        self._header = [b"", b""]

    def _end(self) -> None:
        name = _text(self._disposition.get(b"name", b""), "the name of a parameter")
        content = b"".join(self._content)
        file_name = self._disposition.get(b"filename")
        if not name:
            raise InvalidRequestError(f"the body is no {KIND}: a part has no name")
        if file_name is None:
            self.fields.append((name, _text(content, name)))
        else:
            self.fields.append((name, File(_text(file_name, name).rpartition("/")[2], content)))

    def _end_form(self) -> None:
        self.complete = True


def _text(content: bytes, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{name[:100]}: is not UTF-8, at byte {error.start}") from None
