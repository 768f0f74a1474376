from dragoman.v1 import translation_pb2
from service.wire import SERVICE


def test_the_service_is_called_as_in_the_contract() -> None:
    assert translation_pb2.DESCRIPTOR.services_by_name["Translation"].full_name == SERVICE
