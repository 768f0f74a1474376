"""All faults there are, in the order in which they are tried."""

from tests.faults.cases.broken_engine import BrokenEngine
from tests.faults.cases.cancel_storm import CancelStorm
from tests.faults.cases.clock_jump import ClockJump
from tests.faults.cases.deleted_bundle import DeletedBundle
from tests.faults.cases.descriptors import Descriptors
from tests.faults.cases.failing_step import FailingStep
from tests.faults.cases.full_log_disk import FullLogDisk
from tests.faults.cases.half_open import HalfOpen
from tests.faults.cases.heavy_client import HeavyClient
from tests.faults.cases.killed_server import KilledServer
from tests.faults.cases.reset_connections import ResetConnections
from tests.faults.cases.slow_readers import SlowReaders
from tests.faults.cases.stalled_step import StalledStep
from tests.faults.cases.stopped_process import StoppedProcess
from tests.faults.cases.unread_at_shutdown import UnreadAtShutdown
from tests.faults.cases.unread_log import UnreadLog
from tests.faults.cases.vanished_client import VanishedClient
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    CancelStorm(),
    VanishedClient(),
    ResetConnections(),
    HalfOpen(),
    SlowReaders(),
    HeavyClient(),
    UnreadAtShutdown(),
    FailingStep(),
    BrokenEngine(),
    StalledStep(),
    FullLogDisk(),
    UnreadLog(),
    DeletedBundle(),
    ClockJump(),
    Descriptors(),
    StoppedProcess(),
    KilledServer(),
)
