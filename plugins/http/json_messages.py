"""Messages of the contract as JSON, by protobuf's own mapping: https://protobuf.dev/programming-guides/json/."""

import json
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from dragoman.errors import InvalidRequestError
from dragoman.surrogates import HALF, is_whole
from plugins.http.conversions import converted
from plugins.json_kinds import json_kind

# A list of 8 MiB of empty texts would block the event loop for seconds; no valid request has this many values.
MAX_VALUES: Final = 50_000
# The same for brackets: nested lists cost Python's reader most. Texts contain brackets too, but fewer.
MAX_BRACKETS: Final = 100_000
_MAX_SHOWN: Final = 200

_TYPES: Final[dict[int, tuple[type, str]]] = {
    FieldDescriptor.CPPTYPE_STRING: (str, "a string"),
    FieldDescriptor.CPPTYPE_BOOL: (bool, "a boolean"),
    FieldDescriptor.CPPTYPE_MESSAGE: (dict, "an object"),
}

# Errors of protobuf's reader, which does not convert all of them itself.
_WRONG: Final = (json_format.ParseError, ArithmeticError, ValueError, TypeError)
_M = TypeVar("_M", bound=Message)
_NUMBERS: Final[dict[int, str]] = {
    FieldDescriptor.CPPTYPE_UINT32: f"must be a whole number, 0 to {2**32 - 1}",
    FieldDescriptor.CPPTYPE_INT32: f"must be a whole number, 0 to {2**31 - 1}",  # a page size
    FieldDescriptor.CPPTYPE_DOUBLE: "must be a number",
}


def named(field: str, description: str) -> str:
    """Format an error of one field."""
    return f"{field}: {description}"


async def parse(body: bytes, kind: type[_M]) -> _M:
    """Read a message.

    Args:
        body: JSON in UTF-8; empty: a message without fields.

    Raises:
        InvalidRequestError: the body is no JSON, or a field is unknown or of another type.
    """
    return await converted(len(body), _parse, body, kind)


async def written(message: Message) -> bytes:
    """Write a message."""
    return await converted(message.ByteSize(), _written, message)


def load_object(body: bytes) -> dict[str, Any]:
    """Read a JSON object; the errors are those of :func:`load`."""
    content = load(body)
    if not isinstance(content, dict):
        raise InvalidRequestError(f"the body must be a JSON object, is {json_kind(content)}")
    return content


def load(body: bytes) -> Any:
    """Read JSON in UTF-8, strictly.

    Raises:
        InvalidRequestError: the body is no JSON, or has a repeated key, an invalid number, or too many values.
    """
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        raise InvalidRequestError(f"the body may have at most {MAX_BRACKETS} brackets, has more")
    _check_commas(body)
    try:
        content = json.loads(body.decode(), object_pairs_hook=unique, parse_constant=_refuse_constant)
        _check_size(content)
    except InvalidRequestError:
        raise
    except RecursionError:
        raise InvalidRequestError("the body is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"the body is not UTF-8, at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise InvalidRequestError(f"the body is not JSON, at line {error.lineno}, column {error.colno}") from None
    except ValueError:  # of int()
        raise InvalidRequestError("the body has a number with too many digits") from None
    return content


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object of its fields.

    Raises:
        InvalidRequestError: a name is given twice, or has half a surrogate pair.
    """
    content = dict(pairs)
    if not is_whole("".join(content)):
        raise InvalidRequestError("the body has a name with half a surrogate pair, which is no character")
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidRequestError(named(twice[:_MAX_SHOWN], "is given twice"))
    return content


def from_content(content: dict[str, Any], kind: type[_M]) -> _M:
    """Make a message from parsed JSON; the errors are those of :func:`parse`."""
    _check_fields(content, kind.DESCRIPTOR, "")
    message = kind()
    content = _without_texts(content, message)
    try:
        json_format.ParseDict(content, message)
    except _WRONG as error:
        raise InvalidRequestError(f"the body does not fit: {str(error)[:_MAX_SHOWN]}") from None
    return message


def _parse(body: bytes, kind: type[_M]) -> _M:
    return from_content(load_object(body) if body else {}, kind)


def _written(message: Message) -> bytes:
    content = json_format.MessageToDict(message)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequestError(f"the body is not JSON: {name} is no number of JSON")


def _without_texts(content: dict[str, Any], message: Message) -> dict[str, Any]:
    """Put lists of texts into a message, and return the remaining fields.

    protobuf's own reader applies a regular expression to each text, which takes 60 ms per megabyte.
    """
    rest = dict(content)
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated and field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            texts = getattr(message, field.name)
            texts.extend(rest.pop(field.name, None) or rest.pop(field.camelcase_name, None) or ())
    return rest


def _check_commas(body: bytes) -> None:
    """Refuse most bodies with too many values before they are read: two values of a list have a comma between them.

    Raises:
        InvalidRequestError: there are too many values.
    """
    if body.count(b",") <= MAX_VALUES:
        return
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Every second part is a text. A value has at most one name and one text: four quotes.
    parts = bare.split(b'"', 4 * MAX_VALUES + 1)
    if len(parts) > 4 * MAX_VALUES + 1 or b"".join(parts[::2]).count(b",") > MAX_VALUES:
        raise _too_many_values()


def _check_size(content: Any) -> None:
    """Count the values, without recursion; the errors are those of :func:`_check_commas`."""
    count, waiting = 0, [content]
    while waiting:
        value = waiting.pop()
        inner: Iterable[Any] = ()
        if isinstance(value, list):
            inner = value
        elif isinstance(value, dict):
            inner = value.values()
        else:
            continue
        count += len(value)
        if count > MAX_VALUES:
            raise _too_many_values()
        waiting.extend(inner)


def _check_fields(content: Any, kind: Any, path: str) -> None:
    """Check the names and types of all fields, so that errors are clear; protobuf takes an empty list for a message.

    Raises:
        InvalidRequestError: a name is unknown, or given in both spellings, or a value has another type.
    """
    fields = {name: field for field in kind.fields for name in (field.name, field.camelcase_name)}
    seen = set()
    for name, value in content.items():
        place = f"{path}{name[:_MAX_SHOWN]}"
        if name not in fields:
            raise _invalid(
                place, f"there is no such field, only {', '.join(each.camelcase_name for each in kind.fields)}"
            )
        field = fields[name]
        if field.number in seen:
            raise _invalid(place, "is given twice")
        seen.add(field.number)
        if value is None:
            continue  # null counts as absent
        if field.is_repeated and not isinstance(value, list):
            raise _invalid(place, f"must be a list, is {json_kind(value)}")
        for index, each in enumerate(value if field.is_repeated else [value]):
            _check_value(each, field, f"{place}[{index}]" if field.is_repeated else place)


def _check_value(value: Any, field: Any, place: str) -> None:
    """Check the type of one value; the errors are those of :func:`_check_fields`."""
    kind, name = _TYPES.get(field.cpp_type, (object, ""))
    if not isinstance(value, kind):
        raise _invalid(place, f"must be {name}, is {json_kind(value)}")
    if isinstance(value, str) and not is_whole(value):
        raise _invalid(place, HALF)
    if field.message_type is not None:
        _check_fields(value, field.message_type, f"{place}.")
    elif must := _must(field):
        try:  # protobuf reads numbers from text too
            json_format.ParseDict({field.name: value}, GetMessageClass(field.containing_type)())
        except _WRONG:
            is_ = repr(value) if isinstance(value, str | int | float) else json_kind(value)
            raise _invalid(place, f"{must}, is {is_}"[:_MAX_SHOWN]) from None


def _must(field: Any) -> str:
    """Describe a valid number or enum name; "" for other types."""
    if field.enum_type is not None:
        return f"must be one of {', '.join(value.name for value in field.enum_type.values)}"
    return _NUMBERS.get(field.cpp_type, "")


def _invalid(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(named(field, description), violations=[(field, description)])


def _too_many_values() -> InvalidRequestError:
    return InvalidRequestError(f"the body may have at most {MAX_VALUES} values in JSON, has more")
