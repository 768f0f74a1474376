"""An engine that a test plays, and what stands before it."""

from concurrent.futures import Future

from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.telemetry.metrics import Metrics


def intake_of(mailbox: Mailbox, *, shares: bool = False) -> Intake:
    """Where the segments of calls go; decodes each one, unless it is to share and to keep."""
    return Intake(mailbox, Metrics().of("en-de"), limit_bytes=1_000_000 if shares else 0, coalesce=shares)


class Engine:
    """Ends when it is told to, or fails when the test wants it to."""

    def __init__(self, age_s: float = 0.0) -> None:
        self._age_s = age_s
        self.ended: Future[None] = Future()
        self.ended.set_running_or_notify_cancel()

    def step_age_s(self) -> float:
        return self._age_s

    def stop(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    @property
    def stopped(self) -> bool:
        return self.ended.done()
