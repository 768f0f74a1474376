"""The commands of docs/bulk.md mean one of the default models."""

import re
import shlex
from pathlib import Path

from dragoman.bundle import Manifest, find_bundles
from dragoman.commands.model_source import choose
from plugins.bulk.command import build_parser
from service.settings import DEFAULT_MODELS

PAGE = (Path(__file__).parents[3] / "docs" / "bulk.md").read_text(encoding="utf-8")


def test_each_command_means_one_of_the_default_models() -> None:
    models = [Manifest.read(bundle) for bundle in find_bundles(DEFAULT_MODELS)]
    commands = re.findall(r"^(?:\S+=\S+ | *entrypoint: )?dragoman bulk (.*)", PAGE, re.MULTILINE)
    asked = [build_parser().parse_args(shlex.split(command, comments=True)) for command in commands]
    chosen = [choose(models, options.model or "", options.source or "", options.target or "").name for options in asked]
    assert chosen == ["en-de"] * 5
