"""The threads of an engine: started together, waited for together, and what ended them."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import structlog

_log = structlog.get_logger()


class Workers:
    """Threads of one kind; once the last has ended, `ended` has a result, or the first error that ended one."""

    def __init__(self, name: str, runs: Sequence[Callable[[], None]]) -> None:
        """Threads, not yet started.

        Args:
            name: what their names begin with.
            runs: what each of them does; what it raises ends it, and shows in `ended`.
        """
        self._threads = [
            threading.Thread(target=self._work, args=[run], name=f"{name}-{index}", daemon=True)
            for index, run in enumerate(runs)
        ]
        self._lock = threading.Lock()
        self._running = len(runs)
        self._error: BaseException | None = None
        self.ended: Future[None] = Future()

    def start(self) -> None:
        """Start the threads."""
        self.ended.set_running_or_notify_cancel()  # a waiter that gives up must not cancel it
        for thread in self._threads:
            thread.start()

    def join(self, patience_s: float | None = None) -> None:
        """Wait for the threads that were started, and forget the others.

        Args:
            patience_s: how long for each, before it is left behind; None: for ever.
        """
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(patience_s)
                if thread.is_alive():
                    _log.error("a thread does not end", thread=thread.name)
        # A thread that was never started keeps what it was to run, and that, most likely, keeps us.
        self._threads = [thread for thread in self._threads if thread.is_alive()]

    def _work(self, run: Callable[[], None]) -> None:
        error: BaseException | None = None
        try:
            run()
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
