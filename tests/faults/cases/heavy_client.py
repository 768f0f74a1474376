"""A client that sends a call of several times what may wait."""

from tests.e2e.relay import Relay
from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.waiting import until

_LIMIT_SOURCE_TOKENS = 200_000  # the default of a server
_WAITING = 500  # segments: fewer than a call may have on their way
_ANSWERS = 40
_TIMEOUT_S = 3600.0  # far more than it takes: a call that cannot be done in time would be refused


class HeavyClient(Fault):
    name = "heavy-client"
    side = "client"
    promise = (
        "A call of several times what may wait leaves room for every other client, whose calls go on in their turn; "
        "once it is cancelled, nothing of it is left."
    )
    # The callers of the load are one client: where the machine is slow, one may be refused for the others' calls.
    failures = frozenset({"OVERLOADED"})

    def inject(self, arena: Arena) -> None:
        server = arena.server
        sentences = [f"Tom bought {number} books." for number in range(80_000)]
        many, short = [" ".join(sentences[:40_000]), " ".join(sentences[40_000:])], ["a\n" * 500_000]
        # From another host, since those of one are one client.
        with Relay(server.address, "127.0.0.2") as relay, server.connected(relay.address) as stub:
            for texts in (many, short):
                stream = stub.StreamTranslateText(calls.request_of(texts), timeout=_TIMEOUT_S)
                arena.hit.send()
                until(lambda: server.metric("queue_segments") > _WAITING, "its segments wait")
                arena.load.more(_ANSWERS)
                arena.see("segments that wait at the end", server.metric("queue_segments"), _WAITING / 2)
                waiting = server.metric("queue_source_tokens")
                arena.hold(waiting < _LIMIT_SOURCE_TOKENS, f"no more waits than may: {waiting:g} source tokens")
                stream.cancel()
                calls.enter(lambda stream=stream: calls.read(stream, 2), texts, arena.truth, arena.hit)
                until(lambda: server.metric("queue_segments") < _WAITING / 10, "its segments leave")
        failed = arena.hit.figures().failed
        arena.hold(failed == {"CANCELLED": 2}, f"the calls are cancelled: {dict(failed)}")
