"""Messages of the contract as JSON, by protobuf's own mapping: https://protobuf.dev/programming-guides/json/."""

import json
import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from dragoman.errors import InvalidRequestError
from plugins.http.conversions import converted

# A list of 8 MiB of empty texts would keep the event loop busy for seconds; no valid request has as many.
MAX_VALUES: Final = 50_000
# Likewise: lists within lists cost Python's reader most. Texts have brackets too, but not as many.
MAX_BRACKETS: Final = 100_000
_MAX_SHOWN: Final = 200
HALF: Final = "half a surrogate pair is no character"

_TYPES: Final[dict[int, tuple[type, str]]] = {
    FieldDescriptor.CPPTYPE_STRING: (str, "a string"),
    FieldDescriptor.CPPTYPE_BOOL: (bool, "a boolean"),
    FieldDescriptor.CPPTYPE_MESSAGE: (dict, "an object"),
}

_M = TypeVar("_M", bound=Message)
_PLACE: Final = re.compile(r" at \"?\w+\.([\w.\[\]]+)\"?")
_FAILED: Final = re.compile(r"Failed to parse (\w+) field: ")
_NUMBERS: Final[dict[int, str]] = {
    FieldDescriptor.CPPTYPE_UINT32: f"must be a whole number, 0 to {2**32 - 1}",
    FieldDescriptor.CPPTYPE_INT32: f"must be a whole number, 0 to {2**31 - 1}",  # of things on a page
    FieldDescriptor.CPPTYPE_DOUBLE: "must be a number",
}


def named(field: str, description: str) -> str:
    """Write what is wrong with one field."""
    return f"{field}: {description}"


def is_whole(text: str) -> bool:
    """Tell whether a text that JSON gave has no halves of characters, which JSON knows."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def parse(body: bytes, kind: type[_M]) -> _M:
    """Read a message.

    Args:
        body: JSON in UTF-8; empty: no field is set.

    Raises:
        InvalidRequestError: it is no JSON, or has a field that there is not, or one of another type.
    """
    return await converted(len(body), _parse, body, kind)


async def written(message: Message) -> bytes:
    """Write a message."""
    return await converted(message.ByteSize(), _written, message)


def load_object(body: bytes) -> dict[str, Any]:
    """Read a JSON object whose fields are no message's; the errors are those of :func:`load`."""
    content = load(body)
    if not isinstance(content, dict):
        raise _no_object(content)
    return content


def load(body: bytes) -> Any:
    """Read JSON in UTF-8, strictly.

    Raises:
        InvalidRequestError: it is none, or has a key twice, a number that is none, or too many values.
    """
    if body.count(b"[") + body.count(b"{") > MAX_BRACKETS:
        raise InvalidRequestError(f"the body may have at most {MAX_BRACKETS} brackets, has more")
    try:
        content = json.loads(body.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        _check_size(content)
    except InvalidRequestError:
        raise
    except RecursionError:
        raise InvalidRequestError("the body is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"the body is not UTF-8, at byte {error.start}") from None
    except ValueError as error:
        raise InvalidRequestError(f"the body is not JSON: {str(error)[:_MAX_SHOWN]}") from None
    return content


def from_content(content: Any, kind: type[_M]) -> _M:
    """Make a message of what JSON gave; the errors are those of :func:`parse`."""
    if not isinstance(content, dict):
        raise _no_object(content)
    _check_fields(content, kind.DESCRIPTOR, "")
    message = kind()
    content = _without_texts(content, message)
    try:
        json_format.ParseDict(content, message)
    except json_format.ParseError as error:
        raise _explained(str(error), content, kind.DESCRIPTOR) from None
    except (ArithmeticError, ValueError, TypeError):  # protobuf's own reader does not expect each of them
        raise InvalidRequestError("the body has a number out of range") from None
    return message


def _parse(body: bytes, kind: type[_M]) -> _M:
    return from_content(load(body) if body else {}, kind)


def _written(message: Message) -> bytes:
    content = json_format.MessageToDict(message)
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if not is_whole("".join(content)):
        raise InvalidRequestError("the body has a name with half a surrogate pair, which is no character")
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidRequestError(named(twice[:_MAX_SHOWN], "is given twice"))
    return content


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequestError(f"the body is not JSON: {name} is no number of JSON")


def _without_texts(content: dict[str, Any], message: Message) -> dict[str, Any]:
    """Put lists of texts into a message, and give the rest of its fields.

    protobuf's own reader searches each text with a regular expression, which takes 60 ms a megabyte.
    """
    rest = dict(content)
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated and field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            texts = getattr(message, field.name)
            texts.extend(rest.pop(field.name, None) or rest.pop(field.camelcase_name, None) or ())
    return rest


def _check_size(content: Any) -> None:
    """Count values, without recursion.

    Raises:
        InvalidRequestError: there are too many.
    """
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
            raise InvalidRequestError(f"the body may have at most {MAX_VALUES} values in JSON, has more")
        waiting.extend(inner)


def _check_fields(content: Any, kind: Any, path: str) -> None:
    """Check the names and types of all fields, so that errors are clear; protobuf takes an empty list for a message.

    Raises:
        InvalidRequestError: a name is none, or is given in both ways of writing, or a value has another type.
    """
    fields = {name: field for field in kind.fields for name in (field.name, field.camelcase_name)}
    seen = set()
    for name, value in content.items():
        place = f"{path}{name[:_MAX_SHOWN]}"
        if name not in fields:
            raise _invalid(place, "there is no such field")
        field = fields[name]
        if field.number in seen:
            raise _invalid(place, "is given twice")
        seen.add(field.number)
        if value is None:
            continue  # as if it were not there
        if field.is_repeated and not isinstance(value, list):
            raise _invalid(place, f"must be a list, is {type_name(value)}")
        for index, each in enumerate(value if field.is_repeated else [value]):
            _check_value(each, field, f"{place}[{index}]" if field.is_repeated else place)


def _check_value(value: Any, field: Any, place: str) -> None:
    """Check the type of one value; the errors are those of :func:`_check_fields`."""
    kind, name = _TYPES.get(field.cpp_type, (object, ""))
    if not isinstance(value, kind):
        raise _invalid(place, f"must be {name}, is {type_name(value)}")
    if isinstance(value, str) and not is_whole(value):
        raise _invalid(place, HALF)
    if field.message_type is not None:
        _check_fields(value, field.message_type, f"{place}.")


def _explained(problem: str, content: Any, kind: Any) -> InvalidRequestError:
    """Say which field protobuf found wrong, by its path, and what it must be; else protobuf's own words."""
    outer = ".".join(_FAILED.findall(problem))
    place = _PLACE.search(problem)
    path = place[1].rstrip(".") if place else outer
    description = _PLACE.sub("", _FAILED.sub("", problem)).strip().rstrip(".")
    for name in path.split("."):  # no number is in a list
        fields = kind.fields if kind is not None and isinstance(content, dict) and name in content else ()
        field = next((each for each in fields if name in (each.name, each.camelcase_name)), None)
        if field is None:  # words of a text that look like a path
            return _invalid(path, description[:_MAX_SHOWN])
        content, kind = content[name], field.message_type
    if must := _must(field):
        is_ = repr(content) if isinstance(content, str | int | float) else type_name(content)
        description = f"{must}, is {is_}"
    return _invalid(path, description[:_MAX_SHOWN])


def _must(field: Any) -> str:
    """Say what a number or a name of some must be; "" for all else."""
    if field.enum_type is not None:
        return f"must be one of {', '.join(value.name for value in field.enum_type.values)}"
    return _NUMBERS.get(field.cpp_type, "")


def _invalid(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(named(field, description), violations=[(field, description)])


def _no_object(content: Any) -> InvalidRequestError:
    return InvalidRequestError(f"the body must be a JSON object, is {type_name(content)}")


def type_name(content: Any) -> str:
    """Say what kind of value of JSON it is."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(content), "a number")
