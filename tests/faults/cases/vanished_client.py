"""A client process that dies by SIGKILL with many calls in flight."""

import json
import signal
import subprocess
import sys

from tests.faults.arena import Arena
from tests.faults.fault import Fault
from tests.faults.truth import NOVEL_SENTENCES, ROOT
from tests.waiting import until

_CALLS = 12
_NOT_YET_COUNTED = 100  # segments that are encoded ahead

_CLIENT = """
import json, sys, time
from tests.faults import calls
address, over_http, texts = json.load(sys.stdin)
with calls.connected(address, over_http=over_http) as stub:
    methods = [stub.TranslateText.future, stub.StreamTranslateText]
    kept = [methods[n % 2](calls.request_of([text]), timeout=600) for n, text in enumerate(texts)]
    time.sleep(600)
"""


class VanishedClient(Fault):
    name = "vanished-client"
    side = "client"
    promise = "The calls of a client that is killed are cancelled, every one of them, and their slots are free at once."

    def inject(self, arena: Arena) -> None:
        server = arena.server
        cancelled, submitted = server.cancelled_calls(), server.submitted()
        texts = [arena.truth.novels[number % len(arena.truth.novels)] for number in range(_CALLS)]
        with subprocess.Popen([sys.executable, "-c", _CLIENT], cwd=ROOT, stdin=subprocess.PIPE, text=True) as client:
            try:
                assert client.stdin is not None
                client.stdin.write(json.dumps([server.address, server.over_http, texts]))
                client.stdin.close()
                enough = submitted + _CALLS * NOVEL_SENTENCES - _NOT_YET_COUNTED
                until(lambda: server.submitted() >= enough, "all its calls have begun", 20)
                arena.hit.send(_CALLS)
            finally:
                client.kill()
                arena.over()
        arena.see("clients ended by SIGKILL", client.returncode == -signal.SIGKILL)

        def noticed() -> float:
            return server.cancelled_calls() - cancelled

        took_s = until(lambda: noticed() >= _CALLS, "the server has noticed", 10)
        arena.see("calls cancelled by the server", noticed(), _CALLS)
        arena.measure("s until it noticed", took_s)
        for _ in range(int(noticed())):
            arena.hit.fail("CANCELLED")
