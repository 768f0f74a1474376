"""Runs the server on an ARM processor that qemu emulates: `make test-arm64`.

pip finds wheels for ARM. What the default model decodes on three processors is compared with what it decodes here, a
server there is called from here, and the unit tests of the service run there. Needs root on Debian; says so in one line
and passes where it cannot run. Everything it keeps, to be quick the next time, is the folder dragoman-arm64 in
$XDG_CACHE_HOME or /var/tmp.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from dragoman import Client
from tests.arm64.emulator import Machine, NoMachineError, download_wheels, serving
from tests.debian import NoPackagesError
from tests.made_once import ROOT
from tests.server_process import PATIENCE_S

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
# With all instructions that qemu has, i8mm among them; with products of bytes alone (dot product); with neither.
PROCESSORS: Final = ("max", "neoverse-n1", "cortex-a72")
# Rounding in the last digit decides between tokens that are nearly equal: in some sentences, not in many.
MOST_OTHERS: Final = 6
# They need of the kernel what qemu does not hand on: limits of memory, filters of sockets, the memory of a program.
_NOT_EMULATED: Final = (
    "documents/test_process.py::test_the_system_bounds_what_a_document_takes",
    "documents/test_process.py::test_a_document_that_takes_too_much_memory_is_one_clear_error",
    "registry/test_allocator.py::test_what_is_free_is_handed_back",
    "rpc/test_ending.py::test_no_connection_begins_any_more",
)
_ADDRESS: Final = "127.0.0.1:50951"
UNIT_TESTS: Final = "tests/unit/service"
_NEEDS_TORCH: Final = re.compile(r"^(?:from|import) (?:torch|tests\.synthetic|tests\.exporting|model|export)\b", re.M)


def _wheels() -> bool:
    """Print of each version of Python whether all that a server needs has wheels for ARM."""
    good = True
    for python in PYTHONS:
        try:
            download_wheels([*serving()], python, "--dry-run", "--ignore-installed", "--target=none")
            print(f"Python {python}: all that a server needs has wheels for ARM", flush=True)
        except subprocess.CalledProcessError as error:
            print(f"Python {python}: {(error.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
            good = False
    return good


def _decoded(command: list[str]) -> dict[str, Any]:
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _compare(machine: Machine) -> bool:
    """Print a line for each processor: how many of the translations are those of this one."""
    here = _decoded([sys.executable, "-m", "tests.arm64.decode"])
    good = True
    for processor in PROCESSORS:
        there = _decoded(machine.command(processor, "-m", "tests.arm64.decode"))
        others = sum(one != other for one, other in zip(here["ids"], there["ids"], strict=True))
        products = "exact" if there["exact"] else "NOT exact"
        print(f"{processor}: 8-bit products {products}; {others} of {len(here['ids'])} translations differ", flush=True)
        good &= there["exact"] and others <= MOST_OTHERS
    return good


def _serve(machine: Machine) -> bool:
    """Call a server there: a sentence alone, and among others."""
    flags = [
        f"--address={_ADDRESS}",
        "--http-address=none",
        "--metrics-address=127.0.0.1:0",
        "--models=models/en-de/bundle",
    ]
    server = subprocess.Popen(machine.command("max", "-m", "dragoman.cli", "serve", *flags), stderr=subprocess.DEVNULL)
    try:
        with Client(_ADDRESS, timeout_s=PATIENCE_S) as client:
            client.wait_until_ready(PATIENCE_S)
            alone = client.translate("Good morning.", model="en-de")
            among = client.translate(["Where is the station?", "Good morning.", "It is raining."], model="en-de")
    finally:
        server.terminate()
        code = server.wait(PATIENCE_S)
    print(f"served: {alone.text!r}, among others the same: {among[1] == alone}, exit code {code}", flush=True)
    return among[1] == alone and code == 0


def _unit_tests(machine: Machine) -> bool:
    """Run those of the service that need no torch; pytest prints its own lines."""
    tests = [file.relative_to(ROOT) for file in (ROOT / UNIT_TESTS).rglob("test_*.py")]
    left_out = [f"--ignore={test}" for test in tests if _NEEDS_TORCH.search((ROOT / test).read_text(encoding="utf-8"))]
    left_out += [f"--deselect={UNIT_TESTS}/{test}" for test in _NOT_EMULATED]
    options = ["-q", "-m", "not torch", "-p", "no:cacheprovider", "--hypothesis-profile=inner", *left_out]
    return subprocess.run(machine.command("neoverse-n1", "-m", "pytest", UNIT_TESTS, *options)).returncode == 0


def main() -> int:
    """Run everything; 0 also where there can be no machine."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "/var/tmp") / "dragoman-arm64"
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        try:
            machine = Machine(folder, Path(root))
        except (NoMachineError, NoPackagesError) as error:
            print(f"test-arm64 skipped: {error}")
            return 0
        passed = [_wheels(), *(step(machine) for step in (_compare, _serve, _unit_tests))]
    print(f"{time.monotonic() - started_s:.0f} s")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
