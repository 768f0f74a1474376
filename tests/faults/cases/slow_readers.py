"""Streams whose clients do not read them."""

import time

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.truth import NOVEL_SENTENCES
from tests.waiting import until

_READERS = 6
_UNREAD_S = 1.0


class SlowReaders(Fault):
    name = "slow-readers"
    side = "client"
    promise = (
        "A stream that nobody reads holds no slot and delays nobody; a client that reads later gets everything, and "
        "a stream that is cancelled is removed."
    )

    def inject(self, arena: Arena) -> None:
        server, load = arena.server, arena.load
        load.pause()  # so that the server's count of calls can be compared with the callers'
        resident_mib, ended = server.resident_mib(), server.metric("segments_total")
        answered = server.metric("requests_total") - load.books.figures().sent
        load.go()
        # Over HTTP so short an answer fits into the buffers of the sockets.
        with calls.connected(server.grpc_address, lookahead=False) as stub:
            texts = [[arena.truth.novels[number % len(arena.truth.novels)]] for number in range(_READERS)]
            streams = [stub.StreamTranslateText(calls.request_of(text), timeout=120) for text in texts]
            arena.hit.send(_READERS)
            all_ended = ended + _READERS * NOVEL_SENTENCES
            until(lambda: server.metric("segments_total") >= all_ended, "all of it is decoded", 30)
            load.more(20)
            time.sleep(_UNREAD_S)
            load.pause()
            arena.hold(server.metric("slots_active") == 0, "no slot is held by what is not read")
            answered = server.metric("requests_total") - load.books.figures().sent - answered
            arena.see("streams that wait to be read", _READERS - answered, _READERS)
            arena.measure("MiB held for them", server.resident_mib() - resident_mib)
            arena.load.go()
            for stream in streams[::2]:
                stream.cancel()
            for text, stream in zip(texts, streams, strict=True):
                calls.enter(lambda stream=stream: calls.read(stream, 1), text, arena.truth, arena.hit)
        figures = arena.hit.figures()
        arena.hold(figures.ok == _READERS // 2, f"half of them are read to the end: {figures.ok}")
        arena.hold(figures.failed == {"CANCELLED": _READERS - _READERS // 2}, f"the others: {dict(figures.failed)}")
