"""What a fault is: a promise, and a way to break it."""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from tests.faults.arena import Arena


class Fault(ABC):
    """One fault, given to a server under load.

    Attributes:
        name: on the command line and in the table.
        side: whose fault it is.
        promise: what holds all the same, in one sentence; what holds for all faults is not repeated.
        restarts: whether the server ends in the course of it, and another process takes its place. Then the callers
            of the load may have to try again, and get everything in the end.
        failures: reasons for which a call of the load may fail for good.
        recovery_s: within which a plain request must be as quick as ever, once the cause of the trouble is gone;
            where the server restarts, that includes the loading of the model.
        needs: what this machine lacks for it; empty where it lacks nothing.
    """

    name: ClassVar[str]
    side: ClassVar[Literal["client", "server"]]
    promise: ClassVar[str]
    restarts: ClassVar[bool] = False
    failures: ClassVar[frozenset[str]] = frozenset()
    recovery_s: ClassVar[float] = 5.0

    def __init_subclass__(cls) -> None:
        if cls.restarts:
            cls.recovery_s = 20.0

    @property
    def needs(self) -> str:
        return ""

    @abstractmethod
    def inject(self, arena: Arena) -> None:
        """Do it, see that it happened, and end it."""
