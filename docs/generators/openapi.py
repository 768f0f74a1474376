"""The description of the server's own API over HTTP, OpenAPI 3.1, made of the descriptors of the contract."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from plugins.scoring.method import SCORE
from plugins.terms.method import LIST_GLOSSARIES
from service.handlers.methods import DETECT, LIST_MODELS, STREAM, TRANSLATE, Method

FILE: Final = Path(__file__).parents[2] / "plugins" / "http" / "openapi.json"
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_PROTO: Final = (
    "the message of the same name in proto/dragoman/v1/translation.proto, whose comments say what fields mean"
)
_SCALARS: Final[dict[int, dict[str, Any]]] = {
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_UINT32: {"type": "integer", "format": "uint32", "minimum": 0},
    # protobuf writes these as strings, since no double holds all of them.
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_UINT64: {"type": "string", "format": "uint64"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_FLOAT: {"type": "number", "format": "float"},
}
_ERROR: Final = {
    "type": "object",
    "description": "a google.rpc.Status over HTTP, as AIP-193 has it; docs/errors.md lists the reasons",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "status", "message"],
            "properties": {
                "code": {"type": "integer", "description": "the HTTP status"},
                "status": {"type": "string", "description": "the name of the gRPC status code"},
                "message": {"type": "string"},
                "details": {"type": "array", "items": {"type": "object", "required": ["@type"]}},
            },
        }
    },
}


def page() -> str:
    """Write the file that the server answers with."""
    return json.dumps(document(), indent=2) + "\n"


def document() -> dict[str, Any]:
    """Make the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": "v1",
            "description": "Translation by the models of one server. The same contract as dragoman.v1.Translation of "
            "gRPC, in the JSON of protobuf.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{}, {"bearer": []}, {"key": []}],
        "paths": {
            "/v1/translate": {"post": _posted(TRANSLATE, "Translate texts", _JSON)},
            "/v1/translate:stream": {"post": _posted(STREAM, "Translate texts, as server-sent events", _EVENTS)},
            "/v1/score": {"post": _posted(SCORE, "Score translations", _JSON)},
            "/v1/detect": {"post": _posted(DETECT, "Detect the languages of texts", _JSON)},
            "/v1/models": {"get": _listed(LIST_MODELS, "List the models")},
            "/v1/glossaries": {"get": _listed(LIST_GLOSSARIES, "List the stored glossaries")},
            "/health": {"get": _health()},
        },
        "components": {
            "schemas": dict(_schemas()),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    }


def _posted(method: Method, summary: str, kind: str) -> dict[str, Any]:
    return {
        "operationId": method.name,
        "summary": summary,
        "parameters": [
            {
                "name": "Connect-Timeout-Ms",
                "in": "header",
                "description": "the deadline of the call, in milliseconds",
                "schema": {"type": "integer", "minimum": 0, "maximum": 9_999_999_999},
            }
        ],
        "requestBody": {"required": True, "content": {_JSON: {"schema": _reference(method.request.DESCRIPTOR)}}},
        "responses": _responses(method, kind),
    }


def _listed(method: Method, summary: str) -> dict[str, Any]:
    parameters = [
        {"name": field.camelcase_name, "in": "query", "schema": _SCALARS[field.type]}
        for field in method.request.DESCRIPTOR.fields
    ]
    return {
        "operationId": method.name,
        "summary": summary,
        "parameters": parameters,
        "responses": _responses(method, _JSON),
    }


def _responses(method: Method, kind: str) -> dict[str, Any]:
    failed = {"description": "no answer", "content": {_JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}}
    events = "one message in the data of each event; that of an event named `error` is an Error, and the last"
    text = events if kind == _EVENTS else "the answer"
    answered = {"description": text, "content": {kind: {"schema": _reference(method.answer.DESCRIPTOR)}}}
    return {"200": answered, "default": failed}


def _health() -> dict[str, Any]:
    state = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
    content = {_JSON: {"schema": state}}
    return {
        "operationId": "Health",
        "summary": "Say whether the server takes calls",
        "security": [{}],
        "responses": {
            "200": {"description": "it does", "content": content},
            "503": {"description": "it loads, stalls or shuts down", "content": content},
        },
    }


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    yield "Error", _ERROR
    methods = (TRANSLATE, SCORE, DETECT, LIST_MODELS, LIST_GLOSSARIES, STREAM)
    kinds = (kind for method in methods for kind in (method.request, method.answer))
    descriptors = [kind.DESCRIPTOR for kind in kinds]
    seen: set[str] = set()
    while descriptors:
        descriptor = descriptors.pop()
        if descriptor.name in seen:
            continue
        seen.add(descriptor.name)
        yield descriptor.name, _schema(descriptor)
        descriptors += [field.message_type for field in descriptor.fields if field.message_type and not _is_map(field)]


def _schema(descriptor: Any) -> dict[str, Any]:
    properties = {field.camelcase_name: _property(field) for field in descriptor.fields}
    return {"type": "object", "description": _PROTO, "properties": properties, "additionalProperties": False}


def _property(field: Any) -> dict[str, Any]:
    if _is_map(field):
        return {"type": "object", "additionalProperties": _value(field.message_type.fields_by_name["value"])}
    value = _value(field)
    return {"type": "array", "items": value} if field.is_repeated else value


def _value(field: Any) -> dict[str, Any]:
    if field.message_type is not None:
        return _reference(field.message_type)
    if field.enum_type is not None:
        return {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    return _SCALARS[field.type]


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _reference(descriptor: Any) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{descriptor.name}"}
