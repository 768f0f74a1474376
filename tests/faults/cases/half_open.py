"""Peers that stop answering while their connections stay open."""

from threading import Thread

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.planted import PING_PERIOD_S, PING_TIMEOUT_S
from tests.faults.proxy import Proxy
from tests.faults.truth import NOVEL_SENTENCES
from tests.waiting import until

_CONNECTIONS = 4
_NOT_YET_COUNTED = 100  # segments that are encoded ahead


class HalfOpen(Fault):
    name = "half-open"
    side = "client"
    promise = (
        "A peer that stops answering pings is disconnected after the timeout of pings, and its calls are cancelled; "
        "until then it holds no slot."
    )

    def inject(self, arena: Arena) -> None:
        server = arena.server
        cancelled, submitted = server.cancelled_calls(), server.submitted()
        with Proxy(server.grpc_address) as proxy:  # HTTP/1.1 has no pings

            def call(number: int) -> None:
                texts = [arena.truth.novels[number % len(arena.truth.novels)]]
                with calls.connected(proxy.address, lookahead=False) as stub:
                    calls.call(calls.stream, stub, texts, arena.truth, arena.hit)

            callers = [Thread(target=call, args=[number]) for number in range(_CONNECTIONS)]
            for caller in callers:
                caller.start()
            enough = submitted + _CONNECTIONS * NOVEL_SENTENCES - _NOT_YET_COUNTED
            until(lambda: server.submitted() >= enough, "all calls have begun", 20)
            proxy.freeze()
            arena.see("connections that went silent", proxy.established(), _CONNECTIONS)
            patience_s = 3 * (PING_PERIOD_S + PING_TIMEOUT_S)
            took_s = until(lambda: not proxy.established(), "the server has dropped them", patience_s)
            arena.measure("s until they were dropped", took_s)
            until(lambda: server.cancelled_calls() >= cancelled + _CONNECTIONS, "their calls are cancelled", 10)
            arena.see("calls cancelled by the server", server.cancelled_calls() - cancelled, _CONNECTIONS)
            proxy.go_on()
            for caller in callers:
                caller.join()
        failed = arena.hit.figures().failed
        arena.hold(failed == {"SERVER_UNAVAILABLE": _CONNECTIONS}, f"UNAVAILABLE for all of them: {dict(failed)}")
