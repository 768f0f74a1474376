"""Parameters of protocols that accept JSON, forms, or the query of the URL."""

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from starlette.requests import Request

from dragoman.errors import InvalidRequestError
from dragoman.surrogates import HALF, is_whole
from plugins.http import json_messages, urlencoded
from plugins.http.conversions import is_large
from plugins.http.methods import JSON, kind_of
from plugins.json_kinds import json_kind
from plugins.protocols import multipart
from plugins.protocols.multipart import File

MAX_FIELDS: Final = 2_000
_DECODER: Final = json.JSONDecoder()
_BEGUN_FIELD: Final = re.compile(r'\s*[{,]\s*"([^"\\]*)"\s*:\s*')
_MOST_SHOWN: Final = 40  # maximum characters of a bad value in a message
_FLAGS: Final = {"": False, "0": False, "false": False, "1": True, "true": True}


async def parameters(request: Request, body: bytes, turn: asyncio.Lock) -> dict[str, Any]:
    """Read the parameters of a request; values in the body take precedence over those in the URL.

    Args:
        turn: a lock, so that only one large body is parsed at a time.

    Returns:
        JSON values; from a form or the URL each is a string or a file, or a list if a name occurs several times.

    Raises:
        InvalidRequestError: the parameters are invalid.
    """
    kind = kind_of(request)
    given = _fields(request.scope["query_string"])
    if body and kind not in (JSON, urlencoded.KIND, multipart.KIND):
        kinds = f"must be {JSON}, {urlencoded.KIND} or {multipart.KIND}, is {kind[:100]!r}"
        raise InvalidRequestError(json_messages.named("content-type", kinds))
    if not is_large(len(body)):
        return given | _of_body(kind, body, request)
    async with turn:
        return given | await asyncio.to_thread(_of_body, kind, body, request)


def begun(request: Request, body: bytes, *, is_whole: bool) -> dict[str, Any]:
    """Read the parameters of the URL, and those that are complete in the beginning of a body.

    Args:
        is_whole: whether this is the whole body.

    Raises:
        InvalidRequestError: the parameters are invalid.
    """
    kind = kind_of(request)
    given = _fields(request.scope["query_string"])
    if kind == JSON:
        return given | begun_object(body)
    if kind == multipart.KIND:
        return given | _by_name(multipart.read(body, request.headers["content-type"], MAX_FIELDS, is_whole=False))
    return given | _fields(body if is_whole else body[: body.rfind(b"&") + 1])


def begun_object(body: bytes) -> dict[str, Any]:
    """Read the complete fields in the beginning of a JSON object; none if the text does not begin an object."""
    text, place = body.decode(errors="ignore"), 0  # the beginning may end inside a character
    found = {}
    with suppress(ValueError, RecursionError):
        while field := _BEGUN_FIELD.match(text, place):
            found[field[1]], place = _DECODER.raw_decode(text, field.end())
    return found


def file_of(given: Mapping[str, Any], name: str) -> File:
    """Give a required parameter that is a file.

    Raises:
        InvalidRequestError: the parameter is missing, or no file.
    """
    value = given.get(name)
    if value is None:
        raise InvalidRequestError(json_messages.named(name, "the parameter is missing"))
    if not isinstance(value, File):
        raise InvalidRequestError(json_messages.named(name, f"must be one file, of a form in {multipart.KIND}"))
    return value


def text_of(given: Mapping[str, Any], name: str) -> str:
    """Give a parameter that is a string; "" if it is missing.

    Raises:
        InvalidRequestError: the parameter is no string.
    """
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequestError(json_messages.named(name, f"must be one string, is {_kind(value)}"))
    return _whole(value, name)


def needed(given: Mapping[str, Any], name: str) -> str:
    """Give a required parameter that is a string; the errors are those of :func:`text_of`."""
    value = text_of(given, name)
    if not value:
        raise _empty(given, name)
    return value


def texts_of(given: Mapping[str, Any], name: str) -> tuple[list[str], bool]:
    """Give a parameter that is a text or a list of texts, and tell whether it was a list; a text may be empty.

    Raises:
        InvalidRequestError: the parameter is missing, or of another type.
    """
    texts = given.get(name)
    if texts in (None, []):
        raise _empty(given, name)
    is_list = isinstance(texts, list)
    texts = texts if is_list else [texts]
    for index, text in enumerate(texts):
        place = f"{name}[{index}]" if is_list else name
        if not isinstance(text, str):
            raise InvalidRequestError(json_messages.named(place, f"must be a string, is {_shown(text)}"))
        _whole(text, place)
    return texts, is_list


def names_of(given: Mapping[str, Any], name: str) -> list[str]:
    """Give a parameter that is a list of names, or of names separated by commas; an empty list if it is missing.

    Raises:
        InvalidRequestError: the parameter is of another type.
    """
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(each, str) and each.isprintable() for each in values):
        raise InvalidRequestError(json_messages.named(name, "must be a list of names"))
    return [part.strip() for each in values for part in each.split(",") if part.strip()]


def flag_of(given: Mapping[str, Any], name: str) -> bool:
    """Give a parameter that is true or false; false if it is missing.

    Raises:
        InvalidRequestError: the parameter has another value.
    """
    value = given.get(name)
    if isinstance(value, bool):
        return value
    flag = _FLAGS.get(str("" if value is None else value).lower())
    if flag is None:
        raise InvalidRequestError(json_messages.named(name, f"must be true or false, is {_shown(value)}"))
    return flag


def number_of(given: Mapping[str, Any], name: str, limit: int) -> int:
    """Give a parameter that is a whole number from 0 to a limit; 0 if it is missing.

    Raises:
        InvalidRequestError: the parameter has another value.
    """
    value = given.get(name)
    if value is None or value == "":
        return 0
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= limit:
        rule = f"must be a whole number, 0 to {limit}, is {_shown(value)}"
        raise InvalidRequestError(json_messages.named(name, rule))
    return value


def _empty(given: Mapping[str, Any], name: str) -> InvalidRequestError:
    said = "the parameter is missing" if given.get(name) is None else "must not be empty"
    return InvalidRequestError(json_messages.named(name, said))


def _shown(value: Any) -> str:
    """Show an invalid value; of a list or an object only its kind."""
    return f"{value!r:.{_MOST_SHOWN}}" if isinstance(value, str | float) or type(value) is int else _kind(value)


def _kind(value: Any) -> str:
    return "a file" if isinstance(value, File) else json_kind(value)


def _whole(text: str, name: str) -> str:
    """Check that a text from JSON has no lone surrogates, and return it."""
    if not is_whole(text):
        raise InvalidRequestError(json_messages.named(name, HALF))
    return text


def _of_body(kind: str, body: bytes, request: Request) -> dict[str, Any]:
    if kind == JSON and body:
        return json_messages.load_object(body)
    if kind == multipart.KIND:
        return _by_name(multipart.read(body, request.headers["content-type"], MAX_FIELDS))
    return _fields(body)


def _fields(text: bytes) -> dict[str, Any]:
    return _by_name(urlencoded.read(text, MAX_FIELDS))


def _by_name(fields: Iterable[tuple[str, str | File]]) -> dict[str, Any]:
    """Index fields by name; several fields of one name become a list."""
    named: defaultdict[str, list[str | File]] = defaultdict(list)
    for name, value in fields:
        named[name].append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in named.items()}
