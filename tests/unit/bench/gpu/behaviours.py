"""Parts as they may go wrong, for processes of their own."""

import os
import signal
import subprocess
import time

from bench.gpu.setup import Figures, Task


def succeeds(task: Task) -> Figures:
    return {"size": task.size, "slots": task.setup.most_slots, "in_time": task.clock.left_s > 0}


def fails(task: Task) -> Figures:
    task.note({"rows": [{"slots": 1}]})
    raise RuntimeError("no\nmemory")


def crashes(task: Task) -> Figures:
    task.note({"rows": [{"slots": 1}]})
    print("about to crash", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def hangs(task: Task) -> Figures:
    """With a process of its own, whose id it notes."""
    sleeper = subprocess.Popen(["sleep", "600"])
    task.note({"sleeper": sleeper.pid})
    time.sleep(600)
    return {}


def exits(task: Task) -> Figures:
    os._exit(3)


def misses(task: Task) -> Figures:
    return {"missing": "no driver"}
