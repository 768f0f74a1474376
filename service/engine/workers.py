"""The threads of an engine: started together, waited for together, with the error that ended them."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

import structlog

_log = structlog.get_logger()

_T = TypeVar("_T")
_Work = Callable[[], object]


class Workers:
    """Threads of one kind; once the last has ended, `ended` has a result, or the first error that ended one."""

    def __init__(self, name: str, runs: Sequence[Callable[[], None]]) -> None:
        """Make threads, and do not start them yet.

        Args:
            name: prefix of the threads' names.
            runs: the function of each thread; an error of the function ends the thread, and is set in `ended`.
        """
        self._runs = list(runs)
        self._work: list[SimpleQueue[_Work | None]] = [SimpleQueue() for _ in runs]
        self._threads = [
            threading.Thread(target=self._do, args=[work], name=f"{name}-{index}", daemon=True)
            for index, work in enumerate(self._work)
        ]
        self._lock = threading.Lock()
        self._running = len(runs)
        self._begun = False
        self._error: BaseException | None = None
        self.ended: Future[None] = Future()

    def on_each_thread(self, jobs: Sequence[Callable[[], _T]]) -> list[_T]:
        """Have each thread do one of the jobs before `start`, all at the same time; gives the results, in order.

        Raises:
            BaseException: an error of a job, once all jobs have ended; the threads go on.
        """
        self._begin()
        ends: list[Future[_T]] = [Future() for _ in jobs]
        for work, job, end in zip(self._work, jobs, ends, strict=True):
            work.put(partial(_settle, end, job))
        wait(ends)
        return [end.result() for end in ends]

    def start(self) -> None:
        """Have the threads call their functions."""
        self._begin()
        for work, run in zip(self._work, self._runs, strict=True):
            work.put(run)
            work.put(None)
        self._runs = []  # a function keeps its owner in memory, and the owner most likely keeps us

    def join(self, patience_s: float | None = None) -> bool:
        """Wait for the threads to end; threads that were never started are forgotten.

        Args:
            patience_s: how long to wait for each thread; None: for ever.

        Returns:
            Whether all have ended.
        """
        self._runs = []
        for work in self._work:
            work.put(None)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(patience_s)
                if thread.is_alive():
                    _log.error("a thread does not end", thread=thread.name)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        return not self._threads

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.ended.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
            for thread in self._threads:
                thread.start()

    def _do(self, works: "SimpleQueue[_Work | None]") -> None:
        error: BaseException | None = None
        try:
            while (work := works.get()) is not None:
                work()
        except BaseException as raised:
            error = raised
        with self._lock:
            self._error = self._error or error
            self._running -= 1
            last = not self._running
        if last and self._error is None:
            self.ended.set_result(None)
        elif last:
            self.ended.set_exception(self._error)


def _settle(end: "Future[_T]", job: Callable[[], _T]) -> None:
    try:
        end.set_result(job())
    except BaseException as error:
        end.set_exception(error)
