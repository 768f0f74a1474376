from tests.audit import serving_set


def test_the_audit_is_of_what_serving_needs_and_of_nothing_else() -> None:
    pins = serving_set()
    assert {"grpcio", "onnxruntime", "protobuf", "pydantic-core"} <= pins.keys()  # the last by way of another
    assert pins.keys().isdisjoint({"torch", "onnx", "hypothesis", "trustme"})
    assert all(version[0].isdigit() for version in pins.values())
