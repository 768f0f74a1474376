"""A real supervisor, in a process of its own, whose servers end at bad moments."""

import subprocess
import sys
from pathlib import Path

from dragoman.exit_codes import EXIT_FAILED

ROOT = Path(__file__).parents[4]
PATIENCE_S = 120
SUPERVISE = """
from plugins.processes.supervisor import supervise
from service.settings import Settings

def main(processes: int) -> int:
    free = "127.0.0.1:0"
    quiet = dict(address=free, http_address=free, metrics_address=free, keep_alive_s=60)
    return supervise(Settings(processes=processes, **quiet))
"""
# The supervisor then waits once, and gets the signal of the first end before the closed pipe of the next process.
END_ONE_AFTER_THE_OTHER = """
import os, signal, sys
from plugins.processes import pages
from plugins.processes.restarts import Group
from service import server

def end_all(group, now_s):
    for member in group.running:
        os.kill(member.pid, signal.SIGKILL)
        os.waitid(os.P_PID, member.pid, os.WEXITED | os.WNOWAIT)

Group.wait_s = end_all
server.serve = pages.show_sum = lambda *parts: signal.pause()
sys.exit(main(2))
"""
HANG_UP_AT_ONCE = """
import os, signal, sys
from service import server

def serve(*parts):
    os.kill(os.getpid(), signal.SIGHUP)
    return 7

server.serve = serve
sys.exit(main(1))
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SUPERVISE + code]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT)


def test_processes_that_end_together_before_they_serve_do_not_end_the_supervisor() -> None:
    done = run(END_ONE_AFTER_THE_OTHER)
    assert done.returncode == EXIT_FAILED
    assert "Traceback" not in done.stderr
    assert "a process cannot be started" in done.stderr + done.stdout


def test_a_signal_to_reload_before_a_server_can_take_it_does_not_end_the_server() -> None:
    assert run(HANG_UP_AT_ONCE).returncode == 7
