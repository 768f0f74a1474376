"""Log lines: for people or as JSON, on standard error; ours and those of libraries alike.

No line ever holds a text or a translation: log counts, names and classes of errors, not values of requests.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

import structlog
from grpc._cython import cygrpc

from service.telemetry.line_writer import LineWriter
from service.telemetry.metrics import Metrics

LogFormat = Literal["auto", "console", "json"]

_GRPCIO: Final = cygrpc.__name__  # its logger
_SHARED: Final[list[structlog.typing.Processor]] = [
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class Log(NamedTuple):
    """Where lines go that are too many for the way of all others.

    Attributes:
        write: takes a line that ends with a newline; never blocks.
        as_json: whether lines are to be JSON objects.
    """

    write: Callable[[str], None]
    as_json: bool


@contextmanager
def running(log_format: LogFormat, metrics: Metrics) -> Iterator[Log]:
    """Send all log lines of the process, from INFO on, to standard error.

    Nobody who logs waits for standard error: one thread writes, and what it cannot write is dropped and counted.

    Args:
        log_format: lines for people, JSON, or auto: for people on a terminal, else JSON.
        metrics: of the server, for the count of lines dropped.
    """
    # Started without a standard error, the process may have something else under its number.
    descriptor = sys.__stderr__.fileno() if sys.__stderr__ is not None else os.open(os.devnull, os.O_WRONLY)
    writer = LineWriter(descriptor, metrics.log_lines_dropped_total.inc)
    on_terminal = os.isatty(descriptor)
    as_json = log_format == "json" or (log_format == "auto" and not on_terminal)
    handler = _Handler(writer)
    last = _for_json() if as_json else [structlog.dev.ConsoleRenderer(colors=on_terminal)]
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
    try:
        yield Log(writer.write, as_json)
    finally:
        logging.getLogger().removeHandler(handler)
        writer.close()


class _Handler(logging.Handler):
    """Hands lines to a writer; a line that cannot be made is lost, and nothing else happens."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._writer.write(f"{self.format(record)}\n")
        except Exception:
            self._writer.drop()


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Tell whether a line is worth writing: two of grpcio are not, since any client can cause them at will.

    They are of a call that its client left while it was answered, and of metadata that is no UTF-8, which they show.
    """
    if record.name != _GRPCIO:
        return True
    left = record.exc_info is not None and isinstance(record.exc_info[1], cygrpc.ExecuteBatchError)
    return not left and not str(record.msg).startswith("Invalid encoding on")


def _for_json() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
