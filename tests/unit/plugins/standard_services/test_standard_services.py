"""Health and reflection as they are described; that tools can use them is in e2e/test_health_reflection.py."""

import gc
import weakref

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import DescriptorProto
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from dragoman.v1 import translation_pb2
from plugins.google.translation import GoogleTranslation
from plugins.google.v3 import translation_service_pb2
from plugins.standard_services.services import CLASSES, pool_of
from service.rpc.translation import Translation

POOL = pool_of([Translation.file, GoogleTranslation.file])


@pytest.mark.parametrize(
    ("service", "methods"),
    [
        (
            "dragoman.v1.Translation",
            [
                "TranslateText",
                "StreamTranslateText",
                "BatchTranslateText",
                "ScoreText",
                "DetectLanguage",
                "ListModels",
                "ListGlossaries",
            ],
        ),
        (
            "google.cloud.translation.v3.TranslationService",
            ["TranslateText", "DetectLanguage", "GetSupportedLanguages"],
        ),
        ("grpc.health.v1.Health", ["Check", "List", "Watch"]),
        ("grpc.reflection.v1.ServerReflection", ["ServerReflectionInfo"]),
        ("grpc.reflection.v1alpha.ServerReflection", ["ServerReflectionInfo"]),
    ],
)
def test_every_service_has_its_methods(service: str, methods: list[str]) -> None:
    assert sorted(method.name for method in POOL.FindServiceByName(service).methods) == sorted(methods)


def test_messages_of_reflection_are_the_same_in_both_versions() -> None:
    for message in reflection_pb2.DESCRIPTOR.message_types_by_name.values():
        other = POOL.FindMessageTypeByName(f"grpc.reflection.v1.{message.name}")
        assert _fields(other) == _fields(message)


def test_classes_inside_the_answer_of_list_are_kept() -> None:
    response = CLASSES["HealthListResponse"]
    status = weakref.ref(type(response().statuses["a"]))
    entry = weakref.ref(GetMessageClass(response.DESCRIPTOR.nested_types_by_name["StatusesEntry"]))
    gc.collect()
    assert status() is not None
    assert entry() is not None


def _fields(message: Descriptor) -> list[tuple[str, int, int, int]]:
    described = DescriptorProto()  # protobuf 7 tells the label of a field in no other way
    message.CopyToProto(described)
    return [(field.name, field.number, field.type, field.label) for field in described.field]


@pytest.mark.parametrize("module", [translation_pb2, translation_service_pb2, health_pb2, reflection_pb2])
def test_what_the_stubs_know_is_described(module) -> None:
    for name, message in module.DESCRIPTOR.message_types_by_name.items():
        described = POOL.FindMessageTypeByName(f"{module.DESCRIPTOR.package}.{name}")
        assert {field.name for field in message.fields} <= {field.name for field in described.fields}
