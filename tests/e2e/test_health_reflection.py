import json
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


class Details(NamedTuple):
    """Of a call, as an interceptor hands them on."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: grpc.CallCredentials | None = None
    wait_for_ready: bool | None = None
    compression: grpc.Compression | None = None


class Version(grpc.StreamStreamClientInterceptor):
    """Sends calls of reflection's client, which knows v1alpha only, to another version with the same messages."""

    def __init__(self, version: str) -> None:
        self._version = version

    def intercept_stream_stream(self, continuation, details, requests):
        method = details.method.replace("v1alpha", self._version)
        return continuation(Details(method, details.timeout, details.metadata), requests)


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.address) as channel:
        yield channel


@pytest.fixture(params=["v1", "v1alpha"])
def database(request, channel) -> ProtoReflectionDescriptorDatabase:
    """What the server says of itself in one version of reflection."""
    return ProtoReflectionDescriptorDatabase(grpc.intercept_channel(channel, Version(request.param)))


@pytest.mark.parametrize("service", ["", "dragoman.v1.Translation"])
def test_a_loaded_server_is_healthy(channel, service) -> None:
    request = health_pb2.HealthCheckRequest(service=service)
    stub = health_pb2_grpc.HealthStub(channel)
    assert stub.Check(request, timeout=60).status == health_pb2.HealthCheckResponse.SERVING
    watch = stub.Watch(request, timeout=60)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    watch.cancel()


def test_the_health_of_an_unknown_service(channel) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="x"), timeout=60)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


METHODS = {
    "dragoman.v1.Translation": [
        "TranslateText",
        "StreamTranslateText",
        "BatchTranslateText",
        "ScoreText",
        "DetectLanguage",
        "ListGlossaries",
        "ListModels",
    ],
    "google.cloud.translation.v3.TranslationService": ["TranslateText", "DetectLanguage", "GetSupportedLanguages"],
    "grpc.health.v1.Health": ["Check", "List", "Watch"],
    "grpc.reflection.v1.ServerReflection": ["ServerReflectionInfo"],
    "grpc.reflection.v1alpha.ServerReflection": ["ServerReflectionInfo"],
}


def test_reflection_lists_the_services(database) -> None:
    assert sorted(database.get_services()) == sorted(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_reflection_describes_every_service(database, name: str) -> None:
    service = DescriptorPool(database).FindServiceByName(name)
    assert sorted(method.name for method in service.methods) == sorted(METHODS[name])
    for method in service.methods:
        assert method.input_type.file.package == method.output_type.file.package == service.file.package


def test_what_is_not_there_is_not_found(database) -> None:
    with pytest.raises(KeyError):
        database.FindFileContainingSymbol("dragoman.v2.Translation")


def call_by_reflection(database, channel, method_name: str, request_json: str) -> list[dict]:
    """What grpcurl does: method and messages as the server describes them, the request from JSON, answers to JSON."""
    service_name, _, name = method_name.rpartition("/")
    service = DescriptorPool(database).FindServiceByName(service_name)
    method = service.FindMethodByName(name)
    request, answer = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    path, coders = f"/{service.full_name}/{name}", (request.SerializeToString, answer.FromString)
    message = json_format.Parse(request_json, request())
    if method.server_streaming:
        answers = channel.unary_stream(path, *coders)(message, timeout=60)
    else:
        answers = [channel.unary_unary(path, *coders)(message, timeout=60)]
    return [json.loads(json_format.MessageToJson(answer)) for answer in answers]


def test_a_call_can_be_made_by_reflection_alone(database, channel) -> None:
    request = '{"contents": ["Good morning."], "model": "en-de"}'
    [answer] = call_by_reflection(database, channel, "dragoman.v1.Translation/TranslateText", request)
    [translation] = answer["translations"]
    assert translation["translatedText"] == "Guten Morgen."
    assert translation["finishReason"] == "FINISH_REASON_EOS"


def test_a_stream_can_be_read_by_reflection_alone(database, channel) -> None:
    request = '{"contents": ["Good morning."], "sourceLanguageCode": "en", "targetLanguageCode": "de"}'
    answers = call_by_reflection(database, channel, "dragoman.v1.Translation/StreamTranslateText", request)
    assert "".join(answer.get("textDelta", "") for answer in answers) == "Guten Morgen."
    assert answers[-1]["result"]["translatedText"] == "Guten Morgen."


def test_health_can_be_asked_by_reflection_alone(database, channel) -> None:
    assert call_by_reflection(database, channel, "grpc.health.v1.Health/Check", "{}") == [{"status": "SERVING"}]
    [answer] = call_by_reflection(database, channel, "grpc.health.v1.Health/List", "{}")
    assert answer["statuses"] == {
        name: {"status": "SERVING"}
        for name in ("", "dragoman.v1.Translation", "dragoman.v1.Translation/en-de", "dragoman.bundles")
    }
