import os
import subprocess
import sys
import time

import pytest

from bench.memory import processor_s


def test_it_is_that_of_the_process() -> None:
    before_s = time.process_time()
    seen_s = processor_s(os.getpid())
    assert before_s <= seen_s <= time.process_time()


def test_it_counts_all_threads_of_another_process() -> None:
    code = (
        "import threading, time\n"
        "def work():\n"
        "    while time.thread_time() < 0.05: pass\n"
        "threads = [threading.Thread(target=work) for _ in range(2)]\n"
        "[thread.start() for thread in threads]\n"
        "[thread.join() for thread in threads]\n"
        "print(flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"\n"
        assert processor_s(process.pid) > 0.1
        process.communicate(b"\n")


def test_there_must_be_such_a_process() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(OSError, match="Invalid argument"):
        processor_s(process.pid)
