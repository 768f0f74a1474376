"""A stream that nobody reads while the server is told to stop."""

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.server import DRAIN_TIMEOUT_S
from tests.faults.truth import NOVEL_SENTENCES
from tests.waiting import until

_READERS = 6


class UnreadAtShutdown(Fault):
    name = "unread-at-shutdown"
    side = "client"
    promise = "A stream that nobody reads does not keep the server from stopping in time, with exit code 0."
    restarts = True

    def inject(self, arena: Arena) -> None:
        server = arena.server
        ended = server.metric("segments_total")
        # Over HTTP so short an answer fits into the buffers of the sockets.
        with calls.connected(server.grpc_address, lookahead=False) as stub:
            texts = [[arena.truth.novels[number % len(arena.truth.novels)]] for number in range(_READERS)]
            streams = [stub.StreamTranslateText(calls.request_of(text), timeout=120) for text in texts]
            arena.hit.send(_READERS)
            all_ended = ended + _READERS * NOVEL_SENTENCES
            until(lambda: server.metric("segments_total") >= all_ended, "all of it is decoded", 30)
            code = server.stop()
            arena.hold(code == 0, f"exit code 0 soon after the {DRAIN_TIMEOUT_S:g} s of draining: {code}")
            arena.over()
            server.start()
            for text, stream in zip(texts, streams, strict=True):
                calls.enter(lambda stream=stream: calls.read(stream, 1), text, arena.truth, arena.hit)
        arena.see("streams cut off", arena.hit.figures().failed.total())
