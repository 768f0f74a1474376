"""grpc.health.v1.Health: reports the state of the server and its models, once or at each change.

The servicer of grpcio-health-checking drops all watchers of a name when one of them leaves. Its `set` waits for every
watcher: one that reads nothing would block the shutdown of the server.
"""

from collections.abc import Mapping
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2

from service.registry.health import Health

_Status = health_pb2.HealthCheckResponse
_STATUSES: Final = {True: _Status.SERVING, False: _Status.NOT_SERVING, None: _Status.SERVICE_UNKNOWN}


class HealthServicer:
    """The methods of the service."""

    def __init__(self, health: Health) -> None:
        self._health = health

    async def Check(self, request: Any, context: Any) -> Any:
        """Report the state of the server or a model; NOT_FOUND for an unknown name."""
        serving = self._health.is_serving(request.service)
        if serving is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return health_pb2.HealthCheckResponse(status=_STATUSES[serving])

    async def List(self, request: Any, context: Any) -> Mapping[str, int]:
        """Report the states of the server and all models, by name."""
        return {name: _STATUSES[serving] for name, serving in self._health.all().items()}

    async def Watch(self, request: Any, context: Any) -> None:
        """Report the state of the server or a model, now and at each change, until the end."""
        async for serving in self._health.follow(request.service):
            await context.write(health_pb2.HealthCheckResponse(status=_STATUSES[serving]))
