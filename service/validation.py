"""The fields of a request against the limits: all that is wrong with it at once."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman.errors import FieldViolation, InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from service.catalog import Catalog, ServedModel
from service.settings import Settings

_LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,4}")
_QUOTED: Final = 32  # characters of a bad value that a message repeats


class Order(NamedTuple):
    """What a valid request asks for."""

    model: ServedModel
    max_target_tokens: int


def check(request: pb.TranslateTextRequest, catalog: Catalog, settings: Settings) -> Order:
    """Check a request and find its model.

    Raises:
        InvalidRequestError: at least one field is out of range; names all of them.
        UnknownModelError: no model has the given name.
        UnknownLanguagePairError: no model translates between the given languages.
    """
    violations = [*_contents(request, settings), *_languages(request), *_mime_type(request)]
    try:
        model = catalog.choose(request.model, request.source_language_code, request.target_language_code)
    except InvalidRequestError:
        _raise_if_any(violations)
        raise
    _raise_if_any([*violations, *_options(request, model)])
    return Order(model, request.options.max_target_tokens or model.manifest.max_target_tokens)


def _raise_if_any(violations: list[FieldViolation]) -> None:
    if violations:
        first = violations[0]
        more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
        raise InvalidRequestError(f"{first.field}: {first.description}{more}", violations=violations)


def _contents(request: pb.TranslateTextRequest, settings: Settings) -> Iterator[FieldViolation]:
    count, limit_bytes = len(request.contents), settings.max_text_bytes
    if not 1 <= count <= settings.max_contents:
        yield FieldViolation("contents", f"must hold 1 to {settings.max_contents} texts, holds {count}")
    for index, text in enumerate(request.contents):
        # No character takes more than 4 bytes: most texts need no encoding to be measured.
        if len(text) * 4 > limit_bytes and (size := len(text.encode())) > limit_bytes:
            yield FieldViolation(f"contents[{index}]", f"must be at most {limit_bytes} bytes, is {size}")


def _languages(request: pb.TranslateTextRequest) -> Iterator[FieldViolation]:
    for field in ("source_language_code", "target_language_code"):
        code = getattr(request, field)
        if not code and not request.model:
            yield FieldViolation(field, "must be set where model is not")
        elif code and not _LANGUAGE.fullmatch(code):
            yield FieldViolation(field, f'must be a BCP-47 code such as "en" or "en-US", is {_quote(code)}')


def _mime_type(request: pb.TranslateTextRequest) -> Iterator[FieldViolation]:
    if request.mime_type not in ("", "text/plain"):
        yield FieldViolation("mime_type", f'must be "text/plain" or empty, is {_quote(request.mime_type)}')


def _options(request: pb.TranslateTextRequest, model: ServedModel) -> Iterator[FieldViolation]:
    tokens, limit = request.options.max_target_tokens, model.manifest.max_target_tokens
    if tokens > limit:
        yield FieldViolation(
            "options.max_target_tokens",
            f"must be at most {limit} for model {model.manifest.name}, is {tokens}",
        )


def _quote(value: str) -> str:
    return repr(value if len(value) <= _QUOTED else value[:_QUOTED] + "…")
