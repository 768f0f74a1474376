"""Restart rules: which processes of a group run, when they are restarted, and when all are stopped. Has no clock."""

from dataclasses import dataclass
from typing import Final

_LONG_LIFE_S: Final = 60.0  # after it, earlier failures are forgotten
_PAUSES_S: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)  # before a start, by the number of failures in a row
_LAST_START: Final = 5  # failed starts in a row, while no server serves


@dataclass(slots=True)
class Member:
    """A process and its replacements.

    Attributes:
        name: the name for the log.
        is_server: whether it takes calls.
        pid: the id of the running process; 0: none runs.
        serves: whether the running process is ready.
        has_served: whether any process of the member was ever ready.
        failures: number of processes in a row that ended soon.
        failed_starts: number of processes in a row that ended before they were ready.
        since_s: when the process became ready.
        due_s: when the next process is to start.
    """

    name: str
    is_server: bool = True
    pid: int = 0
    serves: bool = False
    has_served: bool = False
    failures: int = 0
    failed_starts: int = 0
    since_s: float = 0.0
    due_s: float = 0.0


@dataclass(slots=True)
class Group:
    """All processes under one supervisor; all times are from the same clock, in seconds.

    Attributes:
        members: in the order in which they are started.
        stopping: whether no process is started any more; set here if a process cannot be started.
    """

    members: list[Member]
    stopping: bool = False

    @property
    def running(self) -> list[Member]:
        """The members with a running process."""
        return [member for member in self.members if member.pid]

    @property
    def all_serve(self) -> bool:
        """Whether all members are ready."""
        return all(member.serves for member in self.members)

    def due(self, now_s: float) -> list[Member]:
        """Give the members to start now."""
        if self.stopping:
            return []
        return [member for member in self.members if not member.pid and member.due_s <= now_s]

    def wait_s(self, now_s: float) -> float | None:
        """Give the seconds until the next start; None: no start is due."""
        waiting = [] if self.stopping else [member.due_s for member in self.members if not member.pid]
        return max(0.0, min(waiting) - now_s) if waiting else None

    def note_serving(self, member: Member, now_s: float) -> None:
        """Note that a process is ready."""
        member.serves = member.has_served = True
        member.failed_starts = 0
        member.since_s = now_s

    def note_end(self, member: Member, now_s: float) -> None:
        """Note that a process has ended; sets the time of the next start, or stops all processes."""
        lived_s = now_s - member.since_s if member.serves else 0.0
        member.failures = 1 if lived_s > _LONG_LIFE_S else member.failures + 1
        member.failed_starts += not member.serves
        member.pid, member.serves = 0, False
        member.due_s = now_s + _PAUSES_S[min(member.failures, len(_PAUSES_S)) - 1]
        helpless = member.failed_starts >= _LAST_START and not any(one.serves for one in self.members if one.is_server)
        self.stopping |= helpless or not member.has_served
