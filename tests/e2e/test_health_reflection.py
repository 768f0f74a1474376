import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(server.address) as channel:
        yield channel


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


def test_reflection_describes_the_services(channel) -> None:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert "dragoman.v1.Translation" in database.get_services()
    assert "grpc.health.v1.Health" in database.get_services()
    service = DescriptorPool(database).FindServiceByName("dragoman.v1.Translation")
    assert {method.name for method in service.methods} == {
        "TranslateText",
        "StreamTranslateText",
        "BatchTranslateText",
        "ListModels",
    }
