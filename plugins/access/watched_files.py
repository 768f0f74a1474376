"""A value made of files, and made anew when they change; a change that makes none leaves the value as it was."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

import structlog

from dragoman.files import read_regular
from service.settings import SettingsError
from service.telemetry.metrics import Metrics

PERIOD_S: Final = 1.0

_T = TypeVar("_T")
_log = structlog.get_logger()


class ReloadableFiles(Generic[_T]):
    """A value made of the contents of some files, which are small.

    What counts as a change is the contents, not times or inodes: so it makes no difference how the files are replaced,
    and a change within the grain of the clock is not missed.

    Args:
        name: of the files together, for the log and the metric.
        make: from the contents, in the order of the paths; raises a SettingsError where they are wrong.

    Attributes:
        value: made of the files as they were when they were last right.

    Raises:
        SettingsError: no value can be made.
    """

    def __init__(
        self, name: str, paths: Sequence[Path], make: Callable[[Sequence[bytes]], _T], metrics: Metrics
    ) -> None:
        self._name = name
        self._paths = paths
        self._make = make
        self._in_force = metrics.files_in_force.labels(name)
        self._problem: str | None = None
        self._contents = self._read()
        self.value = make(self._contents)
        self._in_force.set(1)

    def refresh(self) -> None:
        """Look whether the files have changed, and make a value of them if so."""
        try:
            contents = self._read()
            if contents != self._contents:
                value = self._make(contents)
                if self._read() != contents:
                    return  # they are just being written: what was checked may be a mixture
                self._contents, self.value = contents, value
                _log.info("files reloaded", files=self._name)
        except SettingsError as error:
            self._fail(str(error))
        except Exception as error:  # whatever it is: a look that ends the looking would keep removed keys valid
            self._fail(type(error).__name__)
        else:
            self._problem = None
            self._in_force.set(1)

    @asynccontextmanager
    async def watched(self, period_s: float = PERIOD_S) -> AsyncIterator[None]:
        """Refresh again and again for the time of the block, off the event loop."""
        watching = asyncio.create_task(self._watch(period_s))
        try:
            yield
        finally:
            watching.cancel()

    async def _watch(self, period_s: float) -> None:
        while True:
            await asyncio.sleep(period_s)
            await asyncio.to_thread(self.refresh)

    def _read(self) -> list[bytes]:
        try:
            return [read_regular(path) for path in self._paths]
        except OSError as error:
            raise SettingsError(f"{error.filename}: {error.strerror}") from error

    def _fail(self, problem: str) -> None:
        self._in_force.set(0)
        if problem != self._problem:
            self._problem = problem
            _log.error("files not reloaded: what was read before stays in force", files=self._name, error=problem)
