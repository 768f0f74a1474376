"""A step that does not end for a while."""

import time

from grpc_health.v1 import health_pb2

from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.server import STEP_TIMEOUT_S
from tests.waiting import until

_STALLED_S = 1.0


class StalledStep(Fault):
    name = "stalled-step"
    side = "server"
    promise = "While a step stalls, health is NOT_SERVING; once it goes on, SERVING again, and every call is answered."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        stalls = server.metric("stalled_steps_total")
        stall = server.control / "stall"
        stall.touch()
        try:
            not_serving = health_pb2.HealthCheckResponse.NOT_SERVING
            noticed_s = until(lambda: server.health() == not_serving, "health is NOT_SERVING", 10)
            answered = arena.load.books.figures().ok
            time.sleep(_STALLED_S)
            arena.hold(arena.load.books.figures().ok == answered, "nothing is answered by an engine that stands still")
        finally:
            stall.unlink()
            arena.over()
        serving_s = until(server.is_serving, "health is SERVING", 10)
        arena.see("stalls noticed", server.metric("stalled_steps_total") - stalls)
        arena.measure("s until health said so", noticed_s)
        arena.hold(noticed_s > STEP_TIMEOUT_S / 2, "health is not withdrawn for a step that may still end in time")
        arena.measure("s until it took that back", serving_s)
