"""grpc.health.v1.Health: asks the state of the server and its models, or watches it.

The servicer of grpcio-health-checking forgets all watchers of a name when one of them leaves, and waits in `set`
until every watcher has taken the news: one that reads nothing would keep the server from shutting down.
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
        """Say how a server or model is; NOT_FOUND for a name that was never heard of."""
        serving = self._health.is_serving(request.service)
        if serving is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return health_pb2.HealthCheckResponse(status=_STATUSES[serving])

    async def List(self, request: Any, context: Any) -> Mapping[str, int]:
        """Say how the server and all models are, by name."""
        return {name: _STATUSES[serving] for name, serving in self._health.all().items()}

    async def Watch(self, request: Any, context: Any) -> None:
        """Say how a server or model is, and again whenever that changes, until the end."""
        async for serving in self._health.follow(request.service):
            await context.write(health_pb2.HealthCheckResponse(status=_STATUSES[serving]))
