"""The pages that `make docs` writes are as it would write them now, and leave nothing out."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

import dragoman
from docs import generate
from docs.generators import client, commands, contract, markdown, settings
from dragoman.cli import all_commands
from dragoman.v1 import translation_pb2 as pb
from service.settings import Settings


@pytest.mark.parametrize("path", generate.PAGES, ids=lambda path: path.name)
def test_a_page_is_what_the_sources_say(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == generate.PAGES[path](), "make docs"


def test_every_public_name_of_the_client_is_described_once() -> None:
    headings = re.findall(r"^##+ (\w+)$", client.page(), flags=re.MULTILINE)
    rows = re.findall(r"^\| `(\w+)` \|", client.page(), flags=re.MULTILINE)
    described = [name for name in [*headings, *rows] if name != "Errors"]
    assert sorted(described) == sorted(dragoman.__all__)


def test_every_public_method_of_the_clients_is_described() -> None:
    for kind in (dragoman.Client, dragoman.AsyncClient):
        methods = {name for name in vars(kind) if not name.startswith("_")}
        assert methods == set(re.findall(rf"^### {kind.__name__}\.(\w+)$", client.page(), flags=re.MULTILINE))


def test_a_constant_that_is_a_default_is_shown_with_its_value() -> None:
    assert "    timeout_s: float = 60.0," in client.page()
    assert "    retries: int = 3," in client.page()


def test_the_contract_has_every_method_message_and_field() -> None:
    page = contract.page()
    headings = set(re.findall(r"^### (\w+)$", page, flags=re.MULTILINE))
    named = {*pb.DESCRIPTOR.message_types_by_name, *pb.DESCRIPTOR.enum_types_by_name}
    assert headings == {*named, *pb.DESCRIPTOR.services_by_name["Translation"].methods_by_name}
    for message in pb.DESCRIPTOR.message_types_by_name.values():
        section = page.split(f"\n### {message.name}\n")[1].split("\n#")[0]
        assert re.findall(r"^- \*\*`(\w+)`\*\*", section, flags=re.MULTILINE) == _fields(message)


def _fields(message: Descriptor) -> list[str]:
    return [field.name for field in message.fields]


def test_the_configuration_has_every_setting() -> None:
    page = settings.page()
    assert [name for name in Settings.model_fields if f"`DRAGOMAN_{name.upper()}`" not in page] == []
    assert "| `--slots` | `DRAGOMAN_SLOTS` | 1 to 4096 | `32` |" in page
    assert "| `--coalesce`, `--no-coalesce` | `DRAGOMAN_COALESCE` | `true`, `false` | `true` |" in page
    assert "| `--step-timeout-s` | `DRAGOMAN_STEP_TIMEOUT_S` | above 0 to 86400 | `10` |" in page


def test_the_command_line_has_every_command() -> None:
    named = re.findall(r"^## dragoman (\S+)", commands.page(), flags=re.MULTILINE)
    assert set(named) == set(all_commands())


def test_arguments_are_written_as_they_are_given() -> None:
    page = commands.page()
    assert "\n| `--precision {fp32,int8,fp16}` |  | default: int8 |\n" in page
    assert "\n| `--rate R` | one of --rate, --concurrency, --ramp |" in page
    assert "\n| `[TEXT ...]` |  |" in page
    assert "\n| `checkpoint` | yes |" in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\n  two", "one two"),
        ("source<TAB>target", r"source\<TAB>target"),
        ("`map<string>`", "`map<string>`"),
        ("see docs/errors.md.", "see [errors.md](../errors.md)."),
    ],
)
def test_a_text_on_one_line(text: str, shown: str) -> None:
    assert markdown.one_line(text) == shown


def test_an_indented_paragraph_is_code() -> None:
    assert markdown.paragraphs("Say\nthis.\n\n    if x:\n        y\n") == "Say this.\n\n```python\nif x:\n    y\n```"


def test_a_bar_in_a_cell_ends_no_cell() -> None:
    assert markdown.table(["type"], [["`int | None`"]]) == "| type |\n| --- |\n| `int \\| None` |"
