"""The features beside the core, which installed distributions name by entry points."""

from importlib.metadata import entry_points
from typing import Any, Final

# A function that opens the graphs of a bundle on another device than the CPU.
DEVICES: Final = "dragoman.devices"
# A function that makes a `service.registry.folders.ModelFolders`.
FOLDERS: Final = "dragoman.folders"
# Functions from a `service.port.PortParts` to a `service.port.Port`.
PORTS: Final = "dragoman.ports"
# Functions from the handlers and the settings to a `service.rpc.grpc_service.GrpcService`.
SERVICES: Final = "dragoman.services"
# A function that reads HTML and XML, as `service.text.markup` has it.
MARKUP: Final = "dragoman.markup"
# A function from the settings to a `service.shelf.Shelf`.
MODELS: Final = "dragoman.models"
# A function from settings, metrics, registry, health and loader to a `service.registry.residency.Residency`.
RESIDENCY: Final = "dragoman.residency"
# A function that serves by several processes, from the settings to the exit code.
SUPERVISORS: Final = "dragoman.supervisors"
# A function from the URL of a collector to a `service.telemetry.access_log.Tracer`.
TRACERS: Final = "dragoman.tracers"


def load(group: str) -> list[Any]:
    """Load what the entry points of a group name, in the order of their own names."""
    return [plugin.load() for plugin in sorted(entry_points(group=group), key=lambda plugin: plugin.name)]


def first(group: str) -> Any:
    """Load what the first entry point of a group names; None where there is none."""
    return next(iter(load(group)), None)
