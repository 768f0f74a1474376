"""grpc.health.v1.Health: the state of the server and of each model, asked for or watched; lives on the event loop.

The servicer of grpcio-health-checking forgets all watchers of a name when one of them leaves, and waits in `set`
until every watcher has taken the news: one that reads nothing would keep the server from shutting down.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman.v1 import translation_pb2

SERVICE: Final = translation_pb2.DESCRIPTOR.services_by_name["Translation"].full_name

_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN: Final = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
_SERVER: Final = ("", SERVICE)
BUNDLES: Final = "dragoman.bundles"  # no service to call: what those who run the server ask about


def name_of(model: str) -> str:
    """Under which name the health of a model is asked for."""
    return f"{SERVICE}/{model}"


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # grpc has no types
    """NOT_SERVING until it is told of models, and for ever after :meth:`leave`.

    The names "" and "dragoman.v1.Translation" are the server's, which serves unless a step of any model stalls;
    "dragoman.v1.Translation/<model>" is a model's. One that was served, or was to be, and is not, is NOT_SERVING.
    "dragoman.bundles" serves while the bundles on disk are those that are served.
    """

    def __init__(self) -> None:
        self._served: frozenset[str] = frozenset()
        self._stalled: frozenset[str] = frozenset()
        self._agree = True
        self._left = False
        self._ended = False
        self._statuses = dict.fromkeys((*_SERVER, BUNDLES), _NOT_SERVING)
        self._news = asyncio.Event()

    @property
    def serving(self) -> bool:
        """Whether the server serves; for any thread."""
        return bool(self._statuses[""] == _SERVING)

    def serve(self, models: Iterable[str]) -> None:
        """These models are served now, and no others."""
        self._served = frozenset(models)
        self._tell()

    def miss(self, model: str) -> None:
        """A model should be served, but could not be loaded; one that is served all the same stays as it is."""
        self._statuses.setdefault(name_of(model), _NOT_SERVING)
        self._tell()

    def agree(self, *, agree: bool) -> None:
        """Whether what is served is what is on disk: no bundle was refused, and none is gone."""
        self._agree = agree
        self._tell()

    def stall(self, models: Iterable[str]) -> None:
        """In these models a step stalls, in no others."""
        self._stalled = frozenset(models)
        self._tell()

    def leave(self) -> None:
        """The server shuts down."""
        self._left = True
        self._tell()

    def end(self) -> None:
        """Send the watchers away: the server has stopped. gRPC would cancel them, and log each as an error."""
        self._ended = True
        self._tell()

    async def Check(self, request: Any, context: Any) -> Any:
        """Say how a server or model is; NOT_FOUND for a name that was never heard of."""
        status = self._statuses.get(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return health_pb2.HealthCheckResponse(status=status)

    async def List(self, request: Any, context: Any) -> Mapping[str, int]:
        """Say how the server and all models are, by name."""
        return dict(self._statuses)

    async def Watch(self, request: Any, context: Any) -> None:
        """Say how a server or model is, and again whenever that changes, until the end."""
        told = None
        while not self._ended:
            news, status = self._news, self._statuses.get(request.service, _UNKNOWN)
            if status == told:
                await news.wait()
            else:
                await context.write(health_pb2.HealthCheckResponse(status=status))
                told = status

    def _tell(self) -> None:
        up = bool(self._served) and not self._left
        for name in _SERVER:
            self._statuses[name] = _SERVING if up and not self._stalled else _NOT_SERVING
        self._statuses[BUNDLES] = _SERVING if up and self._agree else _NOT_SERVING
        for name in [*self._statuses.keys() - {*_SERVER, BUNDLES}, *map(name_of, self._served)]:
            self._statuses[name] = _NOT_SERVING
        if up:
            self._statuses |= {name_of(model): _SERVING for model in self._served - self._stalled}
        news, self._news = self._news, asyncio.Event()
        news.set()
