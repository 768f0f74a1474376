import subprocess
import sys

import pytest

from bench.cpu_time import run

_BURN = "import time\nwhile time.process_time() < 0.6: pass"
_ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {_BURN!r}], start_new_session=True).wait()"


def test_what_a_command_took_is_added_up_with_what_it_started() -> None:
    alone = run([sys.executable, "-c", _BURN])
    assert alone.cpu_s > 0.3
    assert alone.resident_mib > 1
    both = run([sys.executable, "-c", f"{_ORPHAN}\n{_BURN}"])
    assert both.cpu_s > 0.7


def test_a_command_that_fails_is_an_error() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", "raise SystemExit(3)"])
