"""One fault, given to one server: before, during, after, and what was promised beside what was found."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from tests.faults.arena import Arena
from tests.faults.books import Figures
from tests.faults.fault import Fault
from tests.faults.load import Load
from tests.faults.server import Server
from tests.faults.truth import Truth
from tests.waiting import until

_ANSWERS_BEFORE, _ANSWERS_AFTER = 20, 20
_SETTLE_S = 10.0
_SPARE_DESCRIPTORS = 2  # a scrape may be under way
_SPARE_MIB = 48.0  # what a process that has never seen so much work may take once
# A plain request is as quick as ever when it takes no longer than this, or than five times what was usual before.
_QUICK_S, _QUICK_FACTOR = 0.5, 5


@dataclass
class Finding:
    """What came of a fault.

    Attributes:
        name: of the fault.
        skipped: why it was not tried; empty where it was.
        times: how often it was.
        load: the calls of the bystanders.
        hit: the calls of the fault.
        slots_leaked: slots that hold a segment though nobody calls.
        queue_left: segments that wait though nobody calls.
        recovery_s: until a plain request was as quick as ever; infinite where none was.
        resident_mib: before and after.
        descriptors: before and after.
        seen: signs that the fault happened, with their counts.
        measured: what else is worth knowing; of several times the largest.
        broken: promises that were not kept.
        duration_s: of all of it.
    """

    name: str
    skipped: str = ""
    times: int = 1
    load: Figures = field(default_factory=Figures)
    hit: Figures = field(default_factory=Figures)
    slots_leaked: float = 0
    queue_left: float = 0
    recovery_s: float = 0.0
    resident_mib: tuple[float, float] = (0.0, 0.0)
    descriptors: tuple[int, int] = (0, 0)
    seen: dict[str, float] = field(default_factory=dict)
    measured: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    duration_s: float = 0.0


def skip(fault: Fault) -> Finding:
    """What is found of a fault that cannot be tried here."""
    return Finding(fault.name, fault.needs, times=0)


def merge(findings: Sequence[Finding]) -> Finding:
    """All findings of one fault as one: counts are added, of what must stay small the largest is kept."""
    return Finding(
        findings[0].name,
        times=len(findings),
        load=sum((finding.load for finding in findings), Figures()),
        hit=sum((finding.hit for finding in findings), Figures()),
        slots_leaked=max(finding.slots_leaked for finding in findings),
        queue_left=max(finding.queue_left for finding in findings),
        recovery_s=max(finding.recovery_s for finding in findings),
        resident_mib=(findings[0].resident_mib[0], findings[-1].resident_mib[1]),
        descriptors=(findings[0].descriptors[0], findings[-1].descriptors[1]),
        seen=dict(sum((Counter(finding.seen) for finding in findings), Counter())),
        measured={
            what: max(finding.measured.get(what, -math.inf) for finding in findings)
            for finding in findings
            for what in finding.measured
        },
        broken=[what for finding in findings for what in finding.broken],
        duration_s=sum(finding.duration_s for finding in findings),
    )


def run(fault: Fault, server: Server, load: Load, truth: Truth, random: Random) -> Finding:
    """Try a fault on a server that serves a load; the load is paused at the end, the server serves."""
    began_s = time.monotonic()
    load.go()
    load.more(_ANSWERS_BEFORE)
    load.pause()
    before = load.books.figures()
    resident_mib, descriptors, starts = server.resident_mib(), server.descriptors(), server.starts
    arena = Arena(server, load, truth, random, quick_s=max(_QUICK_S, _QUICK_FACTOR * load.usual_latency_s()))
    load.go()
    try:
        fault.inject(arena)
    except Exception as error:  # whatever it is, the table must show it, and the other faults must have their turn
        arena.broken.append(f"not to its end: {type(error).__name__}: {error}")
        server.revive()
    recovery_s = arena.recovery_s()
    arena.hold(recovery_s <= fault.recovery_s, f"a plain request is answered within {fault.recovery_s:g} s")
    _try(arena, "the load goes on", lambda: load.more(_ANSWERS_AFTER))
    _try(arena, "the load ends", load.pause)
    slots_leaked, queue_left = _settled(server)
    after = _descriptors_after(server, descriptors)
    finding = Finding(
        fault.name,
        load=load.books.figures() - before,
        hit=arena.hit.figures(),
        slots_leaked=slots_leaked,
        queue_left=queue_left,
        recovery_s=recovery_s,
        resident_mib=(resident_mib, server.resident_mib()),
        descriptors=(descriptors, after),
        seen=arena.seen,
        measured=arena.measured,
        broken=arena.broken,
    )
    _judge(fault, finding, same_process=server.starts == starts)
    finding.duration_s = time.monotonic() - began_s
    return finding


def _try(arena: Arena, what: str, work: Callable[[], None]) -> None:
    try:
        work()
    except TimeoutError as error:
        arena.broken.append(f"{what}: {error}")


def _settled(server: Server) -> tuple[float, float]:
    """Slots and queue once nobody calls: at once, or as late as patience allows."""
    give_up_s = time.monotonic() + _SETTLE_S
    while True:
        page = server.scrape()
        left = page.total("slots_active"), page.total("queue_segments")
        if left == (0, 0) or time.monotonic() > give_up_s:
            return left
        time.sleep(0.05)


def _descriptors_after(server: Server, before: int) -> int:
    with suppress(TimeoutError):
        until(lambda: server.descriptors() <= before, "descriptors are closed", _SETTLE_S / 2)
    return server.descriptors()


def _judge(fault: Fault, finding: Finding, *, same_process: bool) -> None:
    """Hold against it what is promised of every fault."""
    both = finding.load + finding.hit
    broken = finding.broken
    if both.open:
        broken.append(f"{both.open} calls have no end")
    if both.lost:
        broken.append(f"{both.lost} calls lost")
    if both.wrong:
        broken.append(f"{both.wrong} wrong translations")
    if finding.slots_leaked or finding.queue_left:
        broken.append(f"{finding.slots_leaked:g} slots leaked, {finding.queue_left:g} segments left in the queue")
    if unexpected := {reason: count for reason, count in finding.load.failed.items() if reason not in fault.failures}:
        broken.append(f"calls of the load failed: {unexpected}")
    if finding.load.retried and not fault.restarts:
        broken.append(f"calls of the load had to be tried again: {dict(finding.load.retried)}")
    if same_process and finding.descriptors[1] > finding.descriptors[0] + _SPARE_DESCRIPTORS:
        broken.append("descriptors were left open: {} before, {} after".format(*finding.descriptors))
    if same_process and finding.resident_mib[1] > finding.resident_mib[0] + _SPARE_MIB:
        broken.append("memory grew: {:.0f} MiB before, {:.0f} after".format(*finding.resident_mib))
