"""A wall clock that jumps, forwards and backwards."""

import json
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

import grpc

from dragoman.errors import DeadlineUnreachableError
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.faults import calls
from tests.faults.arena import Arena
from tests.faults.cases.failing_step import poison
from tests.faults.fault import Fault
from tests.faults.server import Server
from tests.faults.truth import NOVEL_SENTENCES
from tests.waiting import until

_SHIM = Path(__file__).parents[1] / "wall_clock.c"
_COMPILER = shutil.which("cc")
_JUMPS_S = (7200, -7200, 0)
_CALLS = 2
_NOT_YET_COUNTED = 100  # segments that are encoded ahead
_SHORT_S, _EARLIEST_S = 0.4, 0.3


class ClockJump(Fault):
    name = "clock-jump"
    side = "server"
    promise = "When the wall clock jumps by hours, deadlines, answers, codes and durations stay right."
    restarts = True

    @property
    def needs(self) -> str:
        return "" if _COMPILER else "there is no C compiler (cc)"

    def inject(self, arena: Arena) -> None:
        server = arena.server
        clock, library = server.control / "clock", server.control / "wall_clock.so"
        _set(clock, 0)
        subprocess.run([str(_COMPILER), "-O2", "-shared", "-fPIC", "-o", library, _SHIM, "-ldl"], check=True)
        server.stop()
        server.start(LD_PRELOAD=str(library), WALL_CLOCK_FILE=str(clock))
        began_s, busy_s = time.monotonic(), server.metric("request_duration_seconds_sum")
        for jump_s in _JUMPS_S:
            self._jump(arena, clock, jump_s)
        busy_s = server.metric("request_duration_seconds_sum") - busy_s
        most_s = (time.monotonic() - began_s) * (len(_JUMPS_S) * _CALLS + 10)
        arena.hold(0 <= busy_s <= most_s, f"durations are not those of the jumps: {busy_s:.1f} s")
        arena.hold(not server.metric("stalled_steps_total"), "no step is taken for stalled")
        server.stop()
        server.start()

    def _jump(self, arena: Arena, clock: Path, jump_s: int) -> None:
        """Jump in the middle of calls, and look at calls that run on and at calls that begin then."""
        server, texts = arena.server, [arena.truth.novels[0]]
        submitted, cancelled, late = server.submitted(), server.cancelled_calls(), _late(server)
        with server.connected() as stub:

            def call() -> None:
                calls.call(calls.unary, stub, texts, arena.truth, arena.hit)

            callers = [Thread(target=call) for _ in range(_CALLS)]
            given_up = stub.TranslateText.future(calls.request_of(texts), timeout=calls.PATIENCE_S)
            arena.hit.send()
            for caller in callers:
                caller.start()
            enough = submitted + (_CALLS + 1) * NOVEL_SENTENCES - _NOT_YET_COUNTED
            until(lambda: server.submitted() >= enough, "all calls have begun", 20)
            _set(clock, jump_s)
            given_up.cancel()
            calls.enter(lambda: calls.answers_of(given_up.result()), texts, arena.truth, arena.hit)
            until(lambda: server.cancelled_calls() + _late(server) > cancelled + late, "the server has noticed", 5)
            counts = server.cancelled_calls() - cancelled, _late(server) - late
            arena.hold(counts == (1, 0), f"a call that was cancelled is counted as such, not as late: {counts}")
            reason, took_s = self._call_with_little_time(arena, stub)
            in_time = took_s > _EARLIEST_S or reason == DeadlineUnreachableError.reason
            arena.hold(in_time, f"a deadline of {_SHORT_S} s does not pass after {took_s:.2f} s: {reason}")
            for caller in callers:
                caller.join()
        poison(arena, 1)
        until(lambda: self._logged_jump(server.log, jump_s), f"the log is {jump_s} s off", 5)
        arena.see(f"jumps of {jump_s:+d} s", 1)

    def _call_with_little_time(self, arena: Arena, stub: TranslationStub) -> tuple[str, float]:
        """Make a call that is not complete in time, since no step ends; gives why it failed, and after how long."""
        stall = arena.server.control / "stall"
        stall.touch()
        arena.hit.send()
        asked_s = time.monotonic()
        try:
            stub.TranslateText(calls.request_of(arena.truth.pages[:1]), timeout=_SHORT_S)
        except grpc.RpcError as error:
            reason = calls.reason_of(error)
            arena.hit.fail(reason)
        else:
            reason = "none"
            arena.hit.answer(False)
        finally:
            stall.unlink()
        return reason, time.monotonic() - asked_s

    def _logged_jump(self, log: list[str], jump_s: int) -> bool:
        """Whether the last line was written by a clock that is so far off."""
        written = datetime.fromisoformat(json.loads(log[-1])["timestamp"])
        return abs((written - datetime.now(UTC)).total_seconds() - jump_s) < 60


def _set(clock: Path, offset_s: int) -> None:
    """In place: the server has the file mapped."""
    with clock.open("r+b" if clock.exists() else "wb") as file:
        file.write(offset_s.to_bytes(8, sys.byteorder, signed=True))


def _late(server: Server) -> float:
    return server.metric("requests_total", code="DEADLINE_EXCEEDED")
