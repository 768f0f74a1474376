"""In processes of their own: there is no way back, and the heaps of earlier threads would stay."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# Threads that are all alive at a time allocate; then glibc tells of its heaps.
ALLOCATE = """
import ctypes, threading
allocated = threading.Barrier(4)
def allocate():
    block = bytearray(50_000)
    allocated.wait()
threads = [threading.Thread(target=allocate) for _ in range(3)]
for thread in threads: thread.start()
allocated.wait()
for thread in threads: thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


def heaps(program: str) -> int:
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_info is of glibc")
def test_threads_share_one_heap_where_each_would_have_its_own() -> None:
    assert heaps(ALLOCATE) == 4
    assert heaps("from service.registry.allocator import share_one_heap; share_one_heap()\n" + ALLOCATE) == 1


# Blocks of the heap, every other of which stays: what lies between them can be handed back, but the heap cannot shrink.
FREE = """
import os
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
blocks = [bytearray(b"x" * 60_000) for _ in range(1000)]
del blocks[::2]
before = resident()
from service.registry.allocator import give_back
give_back()
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators give back as they like")
def test_what_is_free_is_handed_back() -> None:
    done = subprocess.run([sys.executable, "-c", FREE], cwd=ROOT, check=True, capture_output=True, text=True)
    assert int(done.stdout) > 20_000_000
