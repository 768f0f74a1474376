"""gRPC's standard services, health and reflection, with the methods and versions that current tools need.

grpcio-health-checking has Health/List only from 1.85 on, which needs protobuf 7. grpcio-reflection has only v1alpha
(grpc/grpc#38576); the messages of v1 are the same, byte for byte. So both are described here, in a separate pool.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import grpc
from google.protobuf import text_format
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from plugins.standard_services.health import HealthServicer
from plugins.standard_services.open_calls import OpenCalls
from service.registry.health import Health
from service.rpc.grpc_service import GrpcService
from service.settings import Settings
from service.telemetry.metrics import Metrics

_HEALTH: Final = "grpc.health.v1.Health"
_REFLECTION: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")


def add_standard_services(
    server: Any, services: Sequence[GrpcService], health: Health, settings: Settings, metrics: Metrics
) -> None:
    """Add both services to a server of `grpc.aio` that has not started and has these other services."""
    open_calls = OpenCalls(settings.host_connections(), metrics)
    add_health(health, server, open_calls)
    add_reflection(server, open_calls, services)


def add_health(health: Health, server: Any, open_calls: OpenCalls) -> None:
    """Add the health service, with limited calls, to a server of `grpc.aio` that has not started."""
    servicer = HealthServicer(health)
    request = health_pb2.HealthCheckRequest.FromString
    answer = health_pb2.HealthCheckResponse.SerializeToString
    handlers = {
        "Check": grpc.unary_unary_rpc_method_handler(servicer.Check, request, answer),
        "List": grpc.unary_unary_rpc_method_handler(servicer.List, bytes, _list_response),
        "Watch": grpc.unary_stream_rpc_method_handler(servicer.Watch, request, answer),
    }
    _add(server, _HEALTH, handlers, open_calls)


def add_reflection(server: Any, open_calls: OpenCalls, services: Sequence[GrpcService]) -> None:
    """Let a server of `grpc.aio` that has not started describe its services, by reflection v1 and v1alpha."""
    names = (*(service.name for service in services), _HEALTH, *_REFLECTION)
    servicer = reflection.aio.ReflectionServicer(names, pool=pool_of(service.file for service in services))
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for service in _REFLECTION:
        _add(server, service, {"ServerReflectionInfo": handler}, open_calls)


def _add(server: Any, service: str, handlers: Mapping[str, Any], open_calls: OpenCalls) -> None:
    handlers = {name: open_calls.bound(handler) for name, handler in handlers.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _health_file() -> FileDescriptorProto:
    """Describe health.proto as in grpc-proto since 2025."""
    file = FileDescriptorProto.FromString(health_pb2.DESCRIPTOR.serialized_pb)
    if any(message.name == "HealthListRequest" for message in file.message_type):
        return file
    file.message_type.add(name="HealthListRequest")
    response = file.message_type.add(name="HealthListResponse")
    entry = response.nested_type.add(name="StatusesEntry")
    entry.options.map_entry = True
    optional, repeated = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    text, message = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_MESSAGE
    entry.field.add(name="key", number=1, label=optional, type=text)
    status = ".grpc.health.v1.HealthCheckResponse"
    entry.field.add(name="value", number=2, label=optional, type=message, type_name=status)
    entries = ".grpc.health.v1.HealthListResponse.StatusesEntry"
    response.field.add(name="statuses", number=1, label=repeated, type=message, type_name=entries)
    [service] = file.service
    prefix = ".grpc.health.v1.HealthList"
    service.method.add(name="List", input_type=f"{prefix}Request", output_type=f"{prefix}Response")
    return file


def _reflection_v1_file() -> FileDescriptorProto:
    """Describe reflection.proto of v1: v1alpha under another name."""
    alpha = text_format.MessageToString(FileDescriptorProto.FromString(reflection_pb2.DESCRIPTOR.serialized_pb))
    return text_format.Parse(alpha.replace("/v1alpha/", "/v1/").replace(".v1alpha", ".v1"), FileDescriptorProto())


def pool_of(files: Iterable[FileDescriptor]) -> DescriptorPool:
    """Make a pool with the files of services and of gRPC's own services; no file imports another."""
    pool = DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.serialized_pb)
    pool.AddSerializedFile(_health_file().SerializeToString())
    pool.AddSerializedFile(reflection_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(_reflection_v1_file().SerializeToString())
    return pool


_POOL: Final = pool_of(())
# All of them are kept: protobuf crashes if a class is collected as garbage while a message of it is made.
CLASSES: Final = {
    name: GetMessageClass(_POOL.FindMessageTypeByName(f"grpc.health.v1.{name}"))
    for name in ("HealthListResponse", "HealthListResponse.StatusesEntry", "HealthCheckResponse")
}


def _list_response(statuses: Mapping[str, int]) -> bytes:
    return CLASSES["HealthListResponse"](
        statuses={name: {"status": status} for name, status in statuses.items()}
    ).SerializeToString()
