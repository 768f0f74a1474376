"""Build docker-compose.yml and prove it: `make test-compose`.

Runs it on a Docker engine of its own, with stand-ins for what only a registry has, and leaves the machine as it was.
Needs root on Debian; says so in one line and passes where it cannot run. Everything it keeps, to be quick the next
time, is the folder dragoman-compose in $XDG_CACHE_HOME or /var/tmp.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checks
import engine
import names
from stack import Stack

from tests.debian import NoPackagesError


class _Steps:
    """Runs steps, each with a line that says how long it took."""

    def __init__(self) -> None:
        self._started_s = time.monotonic()

    def __call__(self, what: str, step: Callable[..., Any], *arguments: Any) -> None:
        started_s = time.monotonic()
        step(*arguments)
        print(f"{time.monotonic() - started_s:6.1f} s  {what}", flush=True)

    def done(self) -> None:
        print(f"{time.monotonic() - self._started_s:6.1f} s  in all; the machine is as it was")


def _prove(stack: Stack, steps: _Steps) -> None:
    steps("the file is valid, with the profile gpu too", stack.compose, "--profile", "gpu", "config", "--quiet")
    steps("images built", stack.compose, "build")
    try:
        steps("all healthy", stack.up, 1)
        steps("hardened, without torch", checks.hardened, stack)
        steps("a translation, a stream, a batch, a precise error", checks.translates, stack)
        steps("over HTTP: translations, events, errors, the page", checks.speaks_http, stack)
        steps("Prometheus has data for every panel, and evaluates every alert rule", checks.dashboard_has_data, stack)
        steps("the alert rules pass their tests", checks.alerts_are_tested, stack)
        steps("the links of alerts open", checks.runbooks_open, stack)
        steps("two replicas, seen by Prometheus", stack.up, 2)
        steps("both answer calls", checks.shared_by_two, stack)
        steps("both give out the documents of each", checks.documents_of_two, stack)
        steps("one killed: no call lost", checks.survives_kill, stack)
        steps("two replicas again", stack.up, 2)
        steps("one stopped: exit 0, no call lost", checks.survives_stop, stack)
        steps("down", stack.down)
        with names.mirrored() as folder:
            stack.name_models("firefox:en-de", folder)
            steps("image for models by name built", stack.compose, "build", "dragoman")
            steps("a model imported by its name", stack.up, 1)
            steps("it translates", names.translates, stack)
            steps("and again after a restart without a network", names.restarts_alone, stack)
    except BaseException:
        print(stack.compose("logs", "--no-color", "--tail", "30", "dragoman", "balancer"), file=sys.stderr)
        raise
    finally:
        steps("down", stack.down)
        stack.docker("image", "prune", "--force")


def main() -> int:
    """Run everything; 0 also where there can be no engine."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "/var/tmp") / "dragoman-compose"
    steps = _Steps()
    try:
        with engine.running(folder) as tools:
            steps("base image", engine.import_base_image, tools)
            _prove(Stack(tools), steps)
    except (engine.NoEngineError, NoPackagesError) as error:
        print(f"test-compose skipped: {error}")
        return 0
    except AssertionError:
        print(f"test-compose failed:\n{traceback.format_exc()}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        print(f"test-compose failed: {error}\n{error.stderr}", file=sys.stderr)
        return 1
    steps.done()
    return 0


if __name__ == "__main__":
    sys.exit(main())
