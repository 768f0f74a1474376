"""A supervisor for several servers on the same ports: it forks, watches, restarts, reloads and ends them."""

import gc
import os
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from dragoman.address import Address
from dragoman.exit_codes import EXIT_FAILED, EXIT_OK
from plugins.processes import pages
from plugins.processes.restarts import Group, Member
from plugins.processes.weights import OpenedGraphs
from service import plugins, server
from service.registry import loading
from service.security.addresses import bound
from service.settings import Settings
from service.telemetry import logs
from service.telemetry.hint import suggest
from service.text.detection import new_detector
from service.worker import Worker

_Work = Callable[[], int]
_STOP: Final = (signal.SIGTERM, signal.SIGINT)
_HANDLED: Final = (*_STOP, signal.SIGHUP, signal.SIGCHLD)

_log = structlog.get_logger()


def supervise(settings: Settings) -> int:
    """Run the number of servers in the settings, until SIGTERM or SIGINT.

    This process forks; in each forked process, this function returns the exit code of that process.

    Returns:
        The exit code: 0 after a signal; otherwise that of a process that could not be started.

    Raises:
        BundleError: a model cannot be served.
        OSError: listening on an address failed.
    """
    logs.configure_without_thread(settings.log_format)
    return _Supervisor(settings).run()()


class _Supervisor:
    """Forks processes, and waits for signals, for their ends and for their messages. It has no threads of its own."""

    def __init__(self, settings: Settings) -> None:
        self._signals, writing = os.pipe()
        os.set_blocking(writing, False)
        for number in _HANDLED:
            signal.signal(number, lambda *_: None)  # its number is read from the pipe
        signal.set_wakeup_fd(writing)
        self._reserved: list[socket.socket] = []
        addresses = {
            "address": self._reserve(settings.address, "--address"),
            "http_address": settings.http_address and self._reserve(settings.http_address, "--http-address"),
        }
        self._page = _listening(settings.metrics_address)
        self._opened = OpenedGraphs(settings)
        plugins.load(plugins.PORTS)  # imported before the fork, so that all processes share the memory
        if settings.http_address:  # detection over HTTP: 80 MB shared by all processes
            new_detector().load()
        # Without a folder, each server would know only its own documents.
        self._documents = "" if settings.documents or not settings.http_address else tempfile.mkdtemp()
        self._settings = settings.model_copy(update=addresses | {"documents": settings.documents or self._documents})
        self._sockets = [_local_socket() for _ in range(settings.processes)]
        self._servers = [Member(f"server {number}") for number in range(1, settings.processes + 1)]
        self._metrics = Member("metrics", is_server=False)
        self._group = Group([*self._servers, self._metrics])
        self._words: dict[str, int] = {}  # for each member, the pipe on which its process reports that it serves
        self._alive, self._own_end = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._signals, selectors.EVENT_READ, self._take_signals)
        self._code = EXIT_OK
        gc.freeze()  # the garbage collector then does not write to shared memory

    def run(self) -> _Work:
        """Run until all processes have ended; returns the remaining work, in a forked process its own work."""
        while True:
            for member in self._group.due(time.monotonic()):
                if work := self._start(member):
                    return work
            if self._group.stopping and not self._group.running:
                return self._close
            for key, _ in self._selector.select(self._group.wait_s(time.monotonic())):
                key.data()

    def _reserve(self, address: str, flag: str) -> str:
        """Check that an address is free, and keep it for our servers only; returns it with its port."""
        free = bound(Address.parse(address), flag)
        chosen = Address.parse(address)._replace(port=free[0].getsockname()[1])
        for one in free:
            one.close()
        self._reserved += bound(chosen, flag, shared=True)
        return str(chosen)

    def _start(self, member: Member) -> _Work | None:
        """Fork; returns the work of the new process there, and None here."""
        reading, writing = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        pid = os.fork()
        if not pid:
            os.close(reading)
            self._leave()
            return self._work_of(member, partial(_tell, writing))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        os.close(writing)
        self._words[member.name] = reading
        self._selector.register(reading, selectors.EVENT_READ, partial(self._hear, member))
        member.pid = pid
        _log.info("a process has started", process=member.name, pid=pid)
        return None

    def _leave(self) -> None:
        """Release the supervisor's resources in a forked process."""
        os.setpgid(0, 0)  # Ctrl-C reaches only the supervisor, which passes it on
        signal.set_wakeup_fd(-1)
        for number in _HANDLED:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the server handles it: it has not read its models yet
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        for descriptor in (self._own_end, self._signals, *self._words.values()):
            os.close(descriptor)
        self._selector.close()

    def _work_of(self, member: Member, tell: Callable[[], None]) -> _Work:
        if member is self._metrics:
            names = [one.getsockname() for one in self._sockets]
            return partial(pages.show_sum, self._page, names, self._alive, tell)
        listening = self._sockets[self._servers.index(member)]
        worker = Worker(partial(pages.answering, listening), self._alive, tell, takes_a_place=member.has_served)
        return partial(server.serve, self._settings, partial(loading.load, take=self._opened.take), worker)

    def _hear(self, member: Member) -> None:
        """Note that a process serves, if it reported this before its end."""
        reading = self._words.pop(member.name, None)
        if reading is None:  # its end was noted by an earlier event of the same wait
            return
        self._selector.unregister(reading)
        if os.read(reading, 1):
            begins = not all(each.has_served for each in self._group.members)
            self._group.note_serving(member, time.monotonic())
            if self._group.all_serve:
                _log.info("all processes serve", processes=len(self._servers))
                if begins:
                    suggest(self._settings)
        os.close(reading)

    def _take_signals(self) -> None:
        for number in os.read(self._signals, 256):
            if number == signal.SIGCHLD:
                self._take_ends()
            else:
                self._group.stopping |= number in _STOP
                self._pass_on(signal.Signals(number))
        if self._group.stopping and self._group.running == [self._metrics]:
            os.kill(self._metrics.pid, signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        for member in self._servers:
            if member.pid:
                os.kill(member.pid, number)

    def _take_ends(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for member in self._group.running:
                if member.pid == pid:  # the first process of a container also gets children of other processes
                    self._note_end(member, os.waitstatus_to_exitcode(status))

    def _note_end(self, member: Member, code: int) -> None:
        self._hear(member)
        was_stopping = self._group.stopping
        self._group.note_end(member, time.monotonic())
        failed = max(code, 0) if member.is_server else EXIT_OK
        if was_stopping:
            self._code = self._code or failed
        elif self._group.stopping:
            _log.critical("a process cannot be started: all are stopped", process=member.name, code=code)
            self._code = failed or EXIT_FAILED
            self._pass_on(signal.SIGTERM)
        else:
            pause_s = max(0.0, member.due_s - time.monotonic())
            _log.error("a process has ended: another is started", process=member.name, code=code, pause_s=pause_s)

    def _close(self) -> int:
        for one in (*self._reserved, self._page, *self._sockets):
            one.close()
        if self._documents:
            shutil.rmtree(self._documents, ignore_errors=True)
        return self._code


def _tell(writing: int) -> None:
    """Report that this process serves."""
    os.write(writing, b".")
    os.close(writing)


def _listening(metrics_address: str) -> socket.socket:
    address = Address.parse(metrics_address)
    listening, *others = bound(address, "--metrics-address")
    for other in others:
        other.close()
    listening.listen()
    _log.info(f"metrics on {address._replace(port=listening.getsockname()[1])}")
    return listening


def _local_socket() -> socket.socket:
    """Listen on an abstract socket whose name the system chooses."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind("")
    listening.listen()
    return listening
