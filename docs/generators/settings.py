"""The page of the settings: a table for each group, from the settings themselves."""

from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from docs.generators.markdown import table
from service.settings import GROUPS, PREFIX, Settings

ROOT = Path(__file__).parents[2]
HEAD = """# The settings of the server

Made by `make docs` from the settings themselves. [Configuration](../configuration.md) says how they are given."""


def page() -> str:
    """Write the page, with a table for each group of `dragoman serve --help`."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            rows = groups.setdefault(GROUPS[name], [])
        rows.append(_row(name, field))
    heads = ("flag", "variable", "values", "default", "what")
    tables = [f"## {group[0].upper()}{group[1:]}\n\n{table(heads, rows)}" for group, rows in groups.items()]
    return "\n\n".join([HEAD, *tables]) + "\n"


def _row(name: str, field: FieldInfo) -> tuple[str, ...]:
    flag = name.replace("_", "-")
    flags = f"`--{flag}`, `--no-{flag}`" if field.annotation is bool else f"`--{flag}`"
    default = "none" if field.default in ("", ()) else f"`{_shown(field.default)}`"
    return flags, f"`{PREFIX}{name.upper()}`", _values(field), default, field.description or ""


def _values(field: FieldInfo) -> str:
    """Say which values there are: the choices, or the bounds of a number; of texts and paths nothing."""
    if field.annotation is bool:
        return "`true`, `false`"
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    known = [asdict(each) for each in field.metadata if is_dataclass(each) and not isinstance(each, type)]
    bounds = {kind: _shown(value) for each in known for kind, value in each.items()}
    least = f"above {bounds['gt']}" if "gt" in bounds else bounds.get("ge", "")
    return f"{least} to {bounds['le']}" if "le" in bounds else f"{least} or more" if least else ""


def _shown(value: Any) -> str:
    if isinstance(value, tuple):  # the folder of the models: in the repository, as in a wheel
        return ", ".join(str(Path(folder).relative_to(ROOT)) for folder in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)
