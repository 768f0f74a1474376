"""The command `dragoman serve`: its flags, and the settings from these flags."""

import argparse
import json
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from dragoman.arguments import Parser
from dragoman.bundle import Bundle, Manifest, bundles_in, find_all_bundles
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.errors import BundleError
from dragoman.exit_codes import EXIT_OK
from service import model_locations, plugins
from service.model_locations import ModelLocations
from service.registry import capacity, model_cost
from service.registry.folders import check_names, one_name
from service.settings import GROUPS, PREFIX, Settings, SettingsError, load
from service.telemetry.metrics import KV_CACHE_FORMULA

_KEEP_ALIVE_S: Final = 300.0  # without a setting, for more models than memory has room for
_DESCRIPTORS: Final = 64  # a server alone holds some 20; each connection needs one more


def serve(arguments: list[str]) -> int:
    """Serve models over gRPC until SIGTERM or SIGINT."""
    parser = build_parser()
    flags = vars(parser.parse_args(arguments))
    print_config, names = flags.pop("print_config"), flags.pop("names")
    if names and "models" in flags:
        parser.error(f"argument --models: not with NAME, given: {names[0]}; several are --models A,B or NAME NAME")
    flags = {name: ",".join(value) if isinstance(value, list) else value for name, value in flags.items()}
    settings = load(flags | ({"models": tuple(names)} if names else {}), other_variables={ADDRESS_VARIABLE})
    if print_config:
        settings = _with(settings, model_locations.find(settings, bring_in=False))
        print(json.dumps(settings.model_dump(mode="json") | _memory(settings), indent=2), flush=True)
        _check_models(settings.model_folders)
        return EXIT_OK
    _allow_descriptors(settings)
    settings = _with(settings, model_locations.find(settings, bring_in=True))
    _check_models(settings.model_folders)
    if settings.processes == 1:
        from service import server

        return server.serve(settings)
    supervise = plugins.first(plugins.SUPERVISORS)
    if supervise is None:
        raise SettingsError(f"DRAGOMAN_PROCESSES (--processes): needs a plugin of {plugins.SUPERVISORS}")
    return int(supervise(settings))


def build_parser() -> Parser:
    """Build the parser of the command line; a flag that is not given is left out of the result."""
    parser = Parser("dragoman serve", description="Serve models over gRPC until SIGTERM or SIGINT.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="models, instead of --models: what is not there yet is imported into the user's cache folder, once. "
        "firefox:en-de de-en is two",
    )
    group = parser.add_argument_group("settings")
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            group = parser.add_argument_group(GROUPS[name])
        _add_setting(group, name, field)
    parser.add_argument("--print-config", action="store_true", help="print the effective settings and exit")
    return parser


def _with(settings: Settings, found: ModelLocations) -> Settings:
    """Give the settings with the folders of the models in place of their names.

    Raises:
        SettingsError: the models translate through another language than the settings say.
    """
    if settings.pivot_language not in ("", found.pivot or settings.pivot_language):
        raise SettingsError(
            f"{PREFIX}PIVOT_LANGUAGE (--pivot-language): must be left out or {found.pivot}, over which these models of "
            f"Firefox translate; given: {settings.pivot_language!r}"
        )
    update: dict[str, Any] = {
        "models": tuple(map(str, found.folders)),
        "pivot_language": found.pivot or settings.pivot_language,
    }
    if found.on_demand and not (settings.model_memory_mb or settings.keep_alive_s):
        update["keep_alive_s"] = _KEEP_ALIVE_S
    return settings.model_copy(update=update)


def _check_models(folders: Sequence[Path]) -> None:
    """Refuse a start that cannot succeed, before a port is open; also after the settings were printed.

    Raises:
        BundleError: there is no model in a folder, a model has no manifest, or two models have one name.
    """
    found: dict[Path, Manifest] = {}
    for folder in folders:
        found |= {path: Manifest.read(path) for path in bundles_in(folder)}
    check_names(found)


def _allow_descriptors(settings: Settings) -> None:
    """Raise the limit of file descriptors to the need of all connections, or warn that the system allows fewer.

    Raises:
        SettingsError: there are so few that Python, gRPC or onnxruntime would fail first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _DESCRIPTORS:
        raise SettingsError(f"at least {_DESCRIPTORS} file descriptors are needed, the limit is {soft} (ulimit -n)")
    ports = 2 if settings.http_address else 1
    needed = _DESCRIPTORS + ports * settings.max_connections
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if allowed < needed:
        need = f"--max-connections {settings.max_connections} needs {needed} file descriptors"
        print(f"dragoman serve: warning: {need}, the hard limit is {hard} (ulimit -Hn)", file=sys.stderr)
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _add_setting(group: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    """Add the flag of a setting; its value is checked later, as is the value of the environment variable."""
    flag, default = f"--{name.replace('_', '-')}", "none" if field.default in ("", ()) else field.default
    default = ", ".join(default) if isinstance(default, tuple) else default
    text = f"{field.description} (default {default}; {PREFIX}{name.upper()})".replace("%", "%%")
    if field.annotation is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=text)
        return
    origin = get_origin(field.annotation)
    choices = get_args(field.annotation) if origin is Literal else None
    metavar = None if choices else name.rpartition("_")[2].upper()
    # A list may be given in several flags too.
    action = "append" if origin is tuple else "store"
    group.add_argument(flag, action=action, default=argparse.SUPPRESS, choices=choices, metavar=metavar, help=text)


def _memory(settings: Settings) -> dict[str, Any]:
    """Compute the memory of the slots of each model and its total memory, or the reason why it cannot be served."""
    slots = _of_models(settings, lambda path: capacity.describe(Manifest.read(path), settings))
    total = _of_models(settings, lambda path: {"bytes": model_cost.estimate(Bundle.listed(path), settings).total_bytes})
    return {
        "kv_cache": {"formula": KV_CACHE_FORMULA, "models": slots},
        "model_memory": {"formula": model_cost.FORMULA, "models": total},
    }


def _of_models(settings: Settings, describe: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    models: dict[str, Any] = {}
    paths: defaultdict[str, list[Path]] = defaultdict(list)
    for path in find_all_bundles(settings.model_folders):
        try:
            name, description = Manifest.read(path).name, describe(path)
            paths[name].append(path)
            models[name] = {"error": one_name(name, paths[name])} if paths[name][1:] else description
        except BundleError as error:
            models[path.name] = {"error": str(error)}
    return models
