import ast
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor

from dragoman.v1 import translation_pb2 as pb
from dragoman.v1 import translation_pb2_grpc

ROOT = Path(__file__).parents[3]
OWN, GOOGLE = "dragoman/v1", "plugins/google/v3"
GENERATED = {
    OWN: ["translation_pb2.py", "translation_pb2.pyi", "translation_pb2_grpc.py"],
    GOOGLE: ["translation_service_pb2.py", "translation_service_pb2.pyi"],
}
COMMITTED = ROOT / OWN
SERVICE = pb.DESCRIPTOR.services_by_name["Translation"]


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.version_info >= (3, 13):
        pytest.skip("the generator has no wheel for this Python")
    out = tmp_path_factory.mktemp("stubs")
    subprocess.run([ROOT / "proto" / "generate.sh", out], check=True, env={**os.environ, "PYTHON": sys.executable})
    return out


@pytest.mark.parametrize("folder", GENERATED)
def test_the_generator_writes_the_files_that_are_committed(folder: str, regenerated: Path) -> None:
    assert sorted(path.name for path in (regenerated / folder).iterdir()) == sorted(GENERATED[folder])


@pytest.mark.parametrize("file", [f"{folder}/{name}" for folder in GENERATED for name in GENERATED[folder]])
def test_committed_stubs_are_those_of_the_proto(file: str, regenerated: Path) -> None:
    assert (ROOT / file).read_text() == (regenerated / file).read_text(), "stale: run proto/generate.sh"


def test_the_client_has_no_names_of_another_api() -> None:
    """A program may hold the client beside the vendor's: what both register would end it."""
    mixed = [file for file in (ROOT / "dragoman").rglob("*.py") if b"google.cloud" in file.read_bytes()]
    assert mixed == []


def test_registered_under_the_path_that_users_generate_from() -> None:
    assert pb.DESCRIPTOR.name == "dragoman/v1/translation.proto"
    assert pb.DESCRIPTOR.package == "dragoman.v1"


def test_the_proto_imports_nothing_that_a_user_would_have_to_find() -> None:
    assert [file.name for file in pb.DESCRIPTOR.dependencies] == []


def test_the_types_of_the_service_name_its_methods() -> None:
    tree = ast.parse((COMMITTED / "translation_pb2_grpc.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    stub = {node.target.id for node in ast.walk(classes["TranslationStub"]) if isinstance(node, ast.AnnAssign)}
    servicer = {
        node.name: ast.unparse(node.args.args[1].annotation)
        for node in ast.walk(classes["TranslationServicer"])
        if isinstance(node, ast.FunctionDef)
    }
    assert stub == set(SERVICE.methods_by_name)
    assert servicer == {m.name: _annotation(m) for m in SERVICE.methods}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert all(hasattr(translation_pb2_grpc, name) for name in functions | set(classes))


def _annotation(method: MethodDescriptor) -> str:
    message = f"translation_pb2.{method.input_type.name}"
    return f"AsyncIterator[{message}]" if method.client_streaming else message


def test_every_field_of_the_proto_has_a_comment() -> None:
    lines = (ROOT / "proto" / "dragoman" / "v1" / "translation.proto").read_text().splitlines()
    declarations = [
        (above.strip(), line.strip())
        for above, line in pairwise(lines)
        if line.strip().endswith(";") and "=" in line and not line.startswith(("syntax", "option"))
    ]
    fields = sum(len(message.fields) for message in pb.DESCRIPTOR.message_types_by_name.values())
    values = sum(len(enum.values) for enum in pb.DESCRIPTOR.enum_types_by_name.values())
    assert len(declarations) == fields + values
    assert [line for above, line in declarations if not above.startswith("//")] == []
