"""Connections that end with RST in the middle of streams."""

from threading import Thread

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.proxy import Proxy
from tests.faults.truth import NOVEL_SENTENCES
from tests.waiting import until

_CONNECTIONS = 8
_NOT_YET_COUNTED = 100


class ResetConnections(Fault):
    name = "reset-connections"
    side = "client"
    promise = "Calls whose connection is reset fail with UNAVAILABLE at the client and leave their slots at the server."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        cancelled, submitted = server.cancelled_calls(), server.submitted()
        with Proxy(server.address) as proxy:

            def call(number: int) -> None:
                texts = [arena.truth.novels[number % len(arena.truth.novels)]]
                way = calls.stream if number % 2 else calls.unary
                with server.connected(proxy.address) as stub:
                    calls.call(way, stub, texts, arena.truth, arena.hit)

            callers = [Thread(target=call, args=[number]) for number in range(_CONNECTIONS)]
            for caller in callers:
                caller.start()
            enough = submitted + _CONNECTIONS * NOVEL_SENTENCES - _NOT_YET_COUNTED
            until(lambda: server.submitted() >= enough, "all calls have begun", 20)
            arena.see("connections reset", proxy.reset(), _CONNECTIONS)
            arena.over()
            for caller in callers:
                caller.join()
        until(lambda: server.cancelled_calls() >= cancelled + _CONNECTIONS, "the server has noticed", 10)
        arena.see("calls cancelled by the server", server.cancelled_calls() - cancelled, _CONNECTIONS)
        failed = arena.hit.figures().failed
        arena.hold(failed == {"SERVER_UNAVAILABLE": _CONNECTIONS}, f"UNAVAILABLE for all of them: {dict(failed)}")
