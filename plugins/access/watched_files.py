"""A value made from files, and made again when they change; if the new files are invalid, the old value stays."""

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
    """A value made from the contents of some small files.

    Changes are detected by content, not by times or inodes: so any way of replacing the files works, and a change
    within the resolution of the clock is not missed.

    Args:
        name: one name for all the files, for the log and the metric.
        make: makes the value from the contents, in the order of the paths; raises SettingsError if they are invalid.

    Attributes:
        value: the value from the last valid contents.

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
        """Check the files, and make a new value if they have changed."""
        try:
            contents = self._read()
            if contents != self._contents:
                value = self._make(contents)
                if self._read() != contents:
                    return  # a file is just being written: the checked contents may be a mixture
                self._contents, self.value = contents, value
                _log.info("files reloaded", files=self._name)
        except SettingsError as error:
            self._fail(str(error))
        except Exception as error:  # any error: if watching stopped here, removed keys would stay valid
            self._fail(type(error).__name__)
        else:
            self._problem = None
            self._in_force.set(1)

    @asynccontextmanager
    async def watched(self, period_s: float = PERIOD_S) -> AsyncIterator[None]:
        """Refresh periodically during the block, off the event loop."""
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
