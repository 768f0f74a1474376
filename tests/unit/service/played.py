"""An engine that a test plays."""

from concurrent.futures import Future


class Engine:
    """Ends when it is told to, or fails when the test wants it to."""

    def __init__(self) -> None:
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()

    def stop(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def stopped(self) -> bool:
        return self.ended.done()
