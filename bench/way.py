"""Counts what of the server one call passes: files, functions and Python calls, exact, without any time.

    dragoman bench way [--bundle models/en-de/bundle] [--calls] [--json OUT]

A server runs on the main thread of this process, with a profile function on each of its threads; a client on a thread
of its own calls it over a socket. Functions that run while nobody calls are left out, and of several calls of a kind
the one with the fewest counts. Comprehensions are no calls, as from Python 3.12 on. Calls on the engine's thread grow
with the length of the translation: those of one decode step, and of a sentence besides, are told by two limits of
target tokens. The thread that writes the log is left out: it writes the lines of many calls at once.
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

from bench.arguments import add_bundle
from bench.frame import Figures
from bench.server_process import START_TIMEOUT_S, ServerError, free_ports
from dragoman.bundle import Bundle
from dragoman.client import Client
from service.server import serve
from service.settings import load

_ROOT: Final = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_PLAIN: Final = tuple(
    f"The last {noun} leaves at {hour}." for noun in ("train", "bus") for hour in ("six", "ten", "noon", "eight")
)
_TAGGED: Final = tuple(text.replace("leaves", "<b>leaves</b>") for text in _PLAIN)
_STEPS: Final = (2, 4)  # limits of target tokens, below the length of each translation
_INLINED: Final = ("<listcomp>", "<dictcomp>", "<setcomp>")
_LOG_THREAD: Final = "log"
_IDLE_S: Final = 1.0  # longer than any period of the server's own work
_QUIET_S: Final = 0.1  # after an answer: the engine's thread is back in its wait, on a busy machine too
_TIMEOUT_S: Final = 60.0

_Place = tuple[str, str]  # a file below the root, and the name of a function in it


class Way(NamedTuple):
    """What one call passed."""

    calls: Counter[_Place]  # of each function of `service` and its plugins, on the thread of the event loop
    engine_calls: Counter[_Place]  # likewise, on the engine's thread

    @property
    def all_calls(self) -> Counter[_Place]:
        """Of each function of `service` and its plugins, on any thread."""
        return self.calls + self.engine_calls

    def row(self) -> Figures:
        return {
            "files": len({file for file, _ in self.all_calls}),
            "functions": len(self.all_calls),
            "calls": self.all_calls.total(),
            "calls_on_the_loop": self.calls.total(),
        }


class Counts:
    """Counts calls of Python functions on all threads that start after it, and on this one."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[bool, str, str]] = Counter()
        self._loop = threading.get_ident()
        self._runs = False
        self._idle: set[_Place] = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def leave_out_idle(self) -> None:
        """Leave out from now on what runs while nobody calls."""
        time.sleep(_IDLE_S)  # what was called before has ended
        idle = self.of(lambda: time.sleep(_IDLE_S))
        self._idle = set(idle.all_calls)

    def of(self, work: Callable[[], object]) -> Way:
        """Count what is called while something is done on a thread that is not counted itself."""
        self._calls.clear()
        self._runs = True
        work()
        time.sleep(_QUIET_S)
        self._runs = False
        way = Way(Counter(), Counter())
        for (on_loop, file, function), count in self._calls.items():
            if (file, function) not in self._idle:
                (way.calls if on_loop else way.engine_calls)[file, function] += count
        return way

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self._runs and event == "call" and code.co_name not in _INLINED:
            file = code.co_filename.removeprefix(_ROOT)
            is_ours = file.startswith(("service/", "plugins/"))
            if is_ours and threading.current_thread().name != _LOG_THREAD:
                self._calls[threading.get_ident() == self._loop, file, code.co_qualname] += 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_bundle(parser)
    parser.add_argument("--calls", action="store_true", help="list each function and its calls, too")


def measure(arguments: argparse.Namespace) -> Figures:
    """Serve a bundle from English, and call the server; on the main thread, for the server takes signals."""
    Bundle.open(arguments.bundle)  # else the client would wait for the server of a bundle that is none
    port, metrics_port = free_ports(2)
    settings = load(
        {
            "models": (str(arguments.bundle),),
            "address": f"127.0.0.1:{port}",
            "metrics_address": f"127.0.0.1:{metrics_port}",
            "http_address": "none",
            "threads": 1,
        }
    )
    counts, found = Counts(), dict[str, Way]()
    client = threading.Thread(target=_call, args=(settings.address, counts, found))
    client.start()
    try:
        serve(settings)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    client.join()
    if not found:
        raise ServerError("a call failed")
    few, many = (found.pop(_limited(limit)).engine_calls.total() for limit in _STEPS)
    step = (many - few) / (_STEPS[1] - _STEPS[0])
    functions = [
        {"call": name, "file": file, "function": function, "calls": count}
        for name, way in found.items()
        for (file, function), count in way.all_calls.items()
    ]
    return {
        "rows": [{"call": name, **way.row()} for name, way in found.items()],
        "on the engine's thread: calls a decode step of one row": step,
        "and a sentence besides": few - _STEPS[0] * step,
        "functions": functions if arguments.calls else None,
    }


def _limited(limit: int) -> str:
    return f"at most {limit} target tokens"


def _call(address: str, counts: Counts, found: dict[str, Way]) -> None:
    """Make all calls from this thread, and stop the server then; nothing is found where one fails."""
    sys.setprofile(None)
    try:
        with Client(address, timeout_s=_TIMEOUT_S) as client:
            client.wait_until_ready(START_TIMEOUT_S)
            [model] = client.list_models()
            client.translate("We are here.", model=model.name)
            client.translate("We <b>are</b> there.", model=model.name, mime_type="text/html")

            counts.leave_out_idle()

            def least(texts: Sequence[str], **options: Any) -> Way:
                calls = [partial(client.translate, text, model=model.name, **options) for text in texts]
                ways = [counts.of(call) for call in calls]
                return min(ways, key=lambda way: (way.calls.total(), way.all_calls.total()))

            # Other texts for each limit: what the encoder has made of a text is kept.
            limited = {
                _limited(limit): least(_PLAIN[half::2], max_target_tokens=limit) for half, limit in enumerate(_STEPS)
            }
            kinds = {"plain": least(_PLAIN), "cached": least(_PLAIN), "HTML": least(_TAGGED, mime_type="text/html")}
        found |= kinds | limited
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
