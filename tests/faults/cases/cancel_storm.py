"""Hundreds of calls, cancelled at random moments."""

import time

from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.fault import Fault

_WAVES, _CALLS_A_WAVE = 10, 30
_LONGEST_PAUSE_S = 0.004
_LEFT_ALONE = 0.1  # of the calls: they must be answered as if nothing happened around them


class CancelStorm(Fault):
    name = "cancel-storm"
    side = "client"
    promise = "Calls that are cancelled, unary and streaming, leave their slots; calls beside them are answered."

    def inject(self, arena: Arena) -> None:
        server, random = arena.server, arena.random
        calls_before, segments_before = server.cancelled_calls(), server.metric("segments_total", reason="CANCELLED")
        with server.connected() as stub:
            for _ in range(_WAVES):
                started = []
                for number in range(_CALLS_A_WAVE):
                    texts = [random.choice(arena.truth.pages)]
                    method = stub.StreamTranslateText if number % 2 else stub.TranslateText.future
                    arena.hit.send()
                    started.append((texts, method(calls.request_of(texts), timeout=calls.PATIENCE_S), number % 2))
                random.shuffle(started)
                for _, call, _ in started[: round(_CALLS_A_WAVE * (1 - _LEFT_ALONE))]:
                    call.cancel()
                    time.sleep(random.uniform(0, _LONGEST_PAUSE_S))
                for texts, call, streams in started:
                    if streams:
                        calls.enter(lambda call=call: calls.read(call, 1), texts, arena.truth, arena.hit)
                    else:
                        calls.enter(lambda call=call: calls.answers_of(call.result()), texts, arena.truth, arena.hit)
        figures = arena.hit.figures()
        arena.see("calls cancelled", figures.failed["CANCELLED"], _WAVES * _CALLS_A_WAVE / 2)
        arena.see("of them in the server's count", server.cancelled_calls() - calls_before, _WAVES)
        withdrawn = server.metric("segments_total", reason="CANCELLED") - segments_before
        arena.see("segments withdrawn", withdrawn, _WAVES)
        arena.hold(set(figures.failed) == {"CANCELLED"}, f"nothing but CANCELLED: {dict(figures.failed)}")
