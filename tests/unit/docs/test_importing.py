"""The commands of docs/importing.md and the README can be given as they stand there."""

import re
import shlex
from pathlib import Path

from dragoman.commands.translate import build_parser as translate
from export.importing import build_parser as import_
from plugins.library.names import parse
from service.commands.serve import build_parser as serve

ROOT = Path(__file__).parents[3]
PARSERS = {"import": import_, "serve": serve, "translate": translate}


def test_the_commands_for_models_of_others() -> None:
    sources, names = [], []
    for page in (ROOT / "README.md", ROOT / "docs" / "importing.md"):
        for name, rest in re.findall(r"^(?:\S*/)?dragoman (\w+)(.*)", page.read_text(encoding="utf-8"), re.MULTILINE):
            options = PARSERS[name]().parse_args(shlex.split(rest, comments=True))
            sources += [options.source] if name == "import" else []
            names += parse(options.names) if name == "serve" else []
    assert sources == ["Helsinki-NLP/opus-mt-en-de"]
    assert {name.kind for name in names} == {"bundles", "hub", "firefox"}
