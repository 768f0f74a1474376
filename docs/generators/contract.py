"""The page of the contract: the service, messages and enums of the .proto, with its own comments."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from docs.generators.markdown import one_line, paragraphs

ROOT = Path(__file__).parents[2]
PROTO = "dragoman/v1/translation.proto"

# The way to a declaration: numbers of fields of FileDescriptorProto and below, each with an index where it repeats.
Place = tuple[int, ...]
Comments = Mapping[Place, str]


def page() -> str:
    """Write the page."""
    file = _read()
    comments = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
    syntax = (FileDescriptorProto.SYNTAX_FIELD_NUMBER,)
    of_the_file = [each for each in file.source_code_info.location if tuple(each.path) == syntax]
    parts = [
        f"# The contract: {file.package}",
        f"Made by `make docs` from the comments of [{PROTO}](../../proto/{PROTO}). "
        "[Clients in other languages](../clients.md) shows how to make stubs of it.",
        *(paragraphs(comment) for each in of_the_file for comment in each.leading_detached_comments),
    ]
    for index, service in enumerate(file.service):
        parts += _service(service, (FileDescriptorProto.SERVICE_FIELD_NUMBER, index), comments)
    parts.append("## Messages")
    for index, message in enumerate(file.message_type):
        parts += _message(message, (FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER, index), comments)
    parts.append("## Enums")
    for index, enum in enumerate(file.enum_type):
        parts += _enum(enum, (FileDescriptorProto.ENUM_TYPE_FIELD_NUMBER, index), comments)
    return "\n\n".join(parts) + "\n"


def _read() -> FileDescriptorProto:
    """Have protoc parse the file, comments included."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "descriptors"
        flags = ["--include_source_info", f"--descriptor_set_out={out}"]
        assert protoc.main(["protoc", f"-I{ROOT / 'proto'}", *flags, PROTO]) == 0
        return FileDescriptorSet.FromString(out.read_bytes()).file[-1]


def _service(service: ServiceDescriptorProto, place: Place, comments: Comments) -> list[str]:
    parts = [f"## Service {service.name}", paragraphs(comments[place])]
    for index, method in enumerate(service.method):
        comment = comments[*place, ServiceDescriptorProto.METHOD_FIELD_NUMBER, index]
        parts += [f"### {method.name}", _signature(method), paragraphs(comment)]
    return parts


def _signature(method: MethodDescriptorProto) -> str:
    takes = ("a stream of " if method.client_streaming else "") + _link(method.input_type)
    gives = ("a stream of " if method.server_streaming else "") + _link(method.output_type)
    return f"Takes {takes}, answers with {gives}."


def _message(message: DescriptorProto, place: Place, comments: Comments) -> list[str]:
    entries = {entry.name: entry for entry in message.nested_type if entry.options.map_entry}
    rows = [
        f"- **`{field.name}`** ({_type(field, entries)}, number {field.number}): "
        + one_line(comments[*place, DescriptorProto.FIELD_FIELD_NUMBER, index])
        for index, field in enumerate(message.field)
    ]
    return [f"### {message.name}", paragraphs(comments[place]), "\n".join(rows)]


def _type(field: FieldDescriptorProto, entries: Mapping[str, DescriptorProto]) -> str:
    """Name the type of a field as the .proto does, with a link where it is described on the page."""
    if entry := entries.get(_last(field.type_name)):
        key, value = (_type(each, {}).strip("`") for each in entry.field)
        return f"`map<{key}, {value}>`"
    label = "repeated " if field.label == FieldDescriptorProto.LABEL_REPEATED else ""
    label = "optional " if field.proto3_optional else label
    if field.type_name:
        return label + _link(field.type_name)
    return f"`{label}{FieldDescriptorProto.Type.Name(field.type).removeprefix('TYPE_').lower()}`"


def _enum(enum: EnumDescriptorProto, place: Place, comments: Comments) -> Sequence[str]:
    rows = [
        f"- **`{value.name}`** ({value.number}): "
        + one_line(comments[*place, EnumDescriptorProto.VALUE_FIELD_NUMBER, index])
        for index, value in enumerate(enum.value)
    ]
    return [f"### {enum.name}", paragraphs(comments[place]), "\n".join(rows)]


def _link(type_name: str) -> str:
    name = _last(type_name)
    return f"[`{name}`](#{name.lower()})"


def _last(type_name: str) -> str:
    return type_name.rpartition(".")[2]
