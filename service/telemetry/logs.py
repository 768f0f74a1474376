"""Log lines: for people or as JSON, on standard error; lines of this server and of libraries alike.

No line ever holds a text or a translation: lines have counts, names and classes of errors, not values of requests.
"""

import logging
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import structlog
from grpc._cython import cygrpc

from service.settings import LogFormat
from service.telemetry.line_writer import LineWriter
from service.telemetry.metrics import Metrics

_GRPCIO: Final = cygrpc.__name__  # the logger of grpcio
_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class Log(NamedTuple):
    """A faster way to the log, for lines that are too many for a logger.

    Attributes:
        write: takes a line that ends with a newline; never blocks.
        as_json: whether lines are to be JSON objects.
    """

    write: Callable[[str], None]
    as_json: bool


@contextmanager
def running(log_format: LogFormat, metrics: Metrics) -> Iterator[Log]:
    """Send all log lines of the process, from INFO on, to standard error.

    Logging never waits for standard error: one thread writes, and lines that it cannot write are dropped and counted.

    Args:
        log_format: lines for people, JSON, or auto: for people on a terminal, else JSON.
    """
    descriptor = _standard_error()
    dropped = metrics.log_lines_dropped_total.inc
    writer = LineWriter(descriptor, dropped)
    handler, as_json = _configured(log_format, descriptor, writer.write, dropped)
    try:
        yield Log(writer.write, as_json)
    finally:
        logging.getLogger().removeHandler(handler)
        writer.close()


def configure_without_thread(log_format: LogFormat) -> None:
    """Send all log lines to standard error, for a process that forks; lines are lost while standard error is full."""
    descriptor = _standard_error()

    def write(line: str) -> None:
        if select.select([], [descriptor], [], 0)[1]:
            os.write(descriptor, line.encode(errors="backslashreplace"))

    _configured(log_format, descriptor, write, lambda: None)


def _standard_error() -> int:
    # If the process was started without a standard error, descriptor 2 may be another file.
    return sys.__stderr__.fileno() if sys.__stderr__ is not None else os.open(os.devnull, os.O_WRONLY)


def _configured(
    log_format: LogFormat, descriptor: int, write: Callable[[str], None], drop: Callable[[], None]
) -> tuple[logging.Handler, bool]:
    """Have all lines written in a format; gives the handler of the lines, and whether they are JSON."""
    on_terminal = os.isatty(descriptor)
    as_json = log_format == "json" or (log_format == "auto" and not on_terminal)
    handler = _Handler(write, drop)
    last: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=on_terminal)]
    )
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_SHARED,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    handler.addFilter(_is_worth_a_line)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return handler, as_json


class _Handler(logging.Handler):
    """Hands lines over; a line that cannot be made or written is lost, without an error."""

    def __init__(self, write: Callable[[str], None], drop: Callable[[], None]) -> None:
        super().__init__()
        self._write = write
        self._drop = drop

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._write(f"{self.format(record)}\n")
        except Exception:
            self._drop()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Tell whether a line is worth writing: three lines of grpcio are not, since any client can cause them at will.

    One is of a call that its client left during the answer. The others are of paths and metadata that are no UTF-8, and
    show these values.
    """
    if record.name != _GRPCIO:
        return True
    at_will = (cygrpc.ExecuteBatchError, UnicodeDecodeError)
    is_at_will = record.exc_info is not None and isinstance(record.exc_info[1], at_will)
    return not is_at_will and not str(record.msg).startswith("Invalid encoding on")
