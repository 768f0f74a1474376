"""Features outside the core: installed distributions name them by entry points."""

from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

from dragoman.errors import InvalidRequestError

# A function from settings and metrics to a `service.security.access.Access`.
ACCESS: Final = "dragoman.access"
# A function from attention and two `service.text.alignment.Side` to an `Alignment`.
ALIGNMENTS: Final = "dragoman.alignments"
# A function from a count to a `service.text.alternatives.Alternatives`.
ALTERNATIVES: Final = "dragoman.alternatives"
# A function that makes a `plugins.beam.beam.Beam` whose translations hold terms.
BEAMS: Final = "dragoman.beams"
# Functions of an engine that was not started, a manifest and the count of source pieces; they may raise a BundleError.
CHECKS: Final = "dragoman.checks"
# A function that makes a `service.text.detection.Detector`.
DETECTION: Final = "dragoman.detection"
# A function that opens the graphs of a bundle on another device than the CPU.
DEVICES: Final = "dragoman.devices"
# A function from a decode, the end-of-sentence id and its sampling to a `service.engine.step.Row` that samples tokens.
DRAWS: Final = "dragoman.draws"
# A function that makes a `service.registry.folders.ModelFolders`.
FOLDERS: Final = "dragoman.folders"
# Functions from a gRPC port, settings, metrics and a grace period to a context in which its connections are guarded.
GUARDS: Final = "dragoman.guards"
# A function from a tokenizer and a language to another function: from `service.terms.Terms` or None, and a text, to
# `Terms` or None.
KEPT: Final = "dragoman.kept"
# A function that reads HTML and XML, see `service.text.markup`.
MARKUP: Final = "dragoman.markup"
# Methods of dragoman.v1.Translation, each a `service.handlers.methods.Method`.
METHODS: Final = "dragoman.methods"
# A function from the settings to a `service.model_locations.ModelLocations`.
MODELS: Final = "dragoman.models"
# Functions from a `service.port.PortParts` to a `service.port.Port`.
PORTS: Final = "dragoman.ports"
# A function from the weights in a manifest to a `service.text.text_quality.Estimator`.
QUALITY: Final = "dragoman.quality"
# A function from settings, metrics, registry, health and loader to a `service.registry.residency.Residency`.
RESIDENCY: Final = "dragoman.residency"
# A function from a decode, its slot and the end-of-sentence id to a `service.engine.step.Row` that searches.
SEARCHES: Final = "dragoman.searches"
# Functions from the handlers and the settings to a `service.rpc.grpc_service.GrpcService`.
SERVICES: Final = "dragoman.services"
# Functions that add the services of every gRPC server, such as health, to a server: from the server, the other
# services, the health, settings and metrics.
STANDARD_SERVICES: Final = "dragoman.standard_services"
# A function that serves with several processes, from the settings to the exit code.
SUPERVISORS: Final = "dragoman.supervisors"
# A function from the folder of the glossaries, which may be "", to a `service.handlers.glossaries.Glossaries`.
TERMS: Final = "dragoman.terms"
# A function from the URL of a collector to a `service.telemetry.access_log.Tracer`.
TRACERS: Final = "dragoman.tracers"


@cache
def installed() -> Any:
    """List all entry points; their type depends on the version of Python. Reading the distributions takes 20 ms."""
    return entry_points()


def load(group: str) -> list[Any]:
    """Load the objects of all entry points of a group, in the order of the entry points' names."""
    return [plugin.load() for plugin in sorted(installed().select(group=group), key=lambda plugin: plugin.name)]


def first(group: str) -> Any:
    """Load the object of the first entry point of a group; None where there is none."""
    return next(iter(load(group)), None)


@cache  # many calls need it
def needed(group: str, without: str) -> Any:
    """Load the plugin that a request needs.

    Args:
        without: describes a server without the plugin, as in "reads no HTML".

    Raises:
        InvalidRequestError: the plugin is not installed.
    """
    found = first(group)
    if found is None:
        raise InvalidRequestError(f"this server {without}: it has no plugin of {group}")
    return found
