"""The features beside the core are found by the entry points of the installed distribution."""

import tomllib
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from dragoman.v1 import translation_pb2 as pb
from service import plugins
from service.handlers.methods import all_methods

GROUPS = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "entry-points"
]


@pytest.mark.parametrize("group", sorted(GROUPS.keys() - {"dragoman.commands", "dragoman.methods"}))
def test_what_the_project_names_is_installed_and_can_be_called(group: str) -> None:
    loaded = plugins.load(group)
    assert [f"{each.__module__}:{each.__qualname__}" for each in loaded] == [
        target for _, target in sorted(GROUPS[group].items())
    ]
    assert all(map(callable, loaded))


def test_all_methods_of_the_contract_are_there() -> None:
    contract = pb.DESCRIPTOR.services_by_name["Translation"].methods_by_name
    assert sorted(method.name for method in all_methods()) == sorted(contract)


def test_plugins_come_in_the_order_of_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = EntryPoints([EntryPoint("b", "math:floor", "g"), EntryPoint("a", "math:ceil", "g")])
    monkeypatch.setattr(plugins, "installed", lambda: installed)
    assert [each.__name__ for each in plugins.load("g")] == ["ceil", "floor"]
    assert plugins.load("another") == []
