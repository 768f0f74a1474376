"""Parts as they may go wrong, for processes of their own."""

import os
import signal
import subprocess
import time

from bench.frame import Figures
from bench.gpu.task import Task


def succeeds(task: Task) -> Figures:
    in_time = time.monotonic() < task.end_s
    return {"size": task.size, "slots": task.setup.most_slots, "in_time": in_time}


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


def is_not_so(task: Task) -> Figures:
    return {"checks": {"the same tokens": False, "no copies": True}}
