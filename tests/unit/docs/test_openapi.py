import json

from google.protobuf.descriptor import FieldDescriptor
from openapi_spec_validator import OpenAPIV31SpecValidator

from docs.generators import openapi
from dragoman.v1 import translation_pb2 as pb


def test_the_description_is_valid() -> None:
    assert list(OpenAPIV31SpecValidator(openapi.document()).iter_errors()) == []


def test_every_field_of_every_message_is_described() -> None:
    schemas = openapi.document()["components"]["schemas"]
    for kind in (pb.TranslateTextRequest, pb.TranslateOptions, pb.TranslatedText, pb.ScoreTextRequest, pb.Model):
        names = {field.camelcase_name for field in kind.DESCRIPTOR.fields}
        assert set(schemas[kind.DESCRIPTOR.name]["properties"]) == names
    contents = schemas["TranslateTextRequest"]["properties"]["contents"]
    assert contents == {"type": "array", "items": {"type": "string"}}
    assert schemas["TextError"]["properties"]["metadata"]["additionalProperties"] == {"type": "string"}


def test_all_references_lead_somewhere() -> None:
    document = openapi.document()
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    text = json.dumps(document)
    used = {part.partition('"')[0] for part in text.split('"$ref": "')[1:]}
    assert used
    assert used <= known
    assert FieldDescriptor.TYPE_BYTES not in {
        field.type for message in pb.DESCRIPTOR.message_types_by_name.values() for field in message.fields
    }
