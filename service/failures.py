"""Errors of the server itself: logged by class and place, since the message of an error may hold a text."""

import traceback
from collections.abc import Sequence

import structlog

from dragoman.errors import DragomanError, FieldViolation, InternalError, InvalidRequestError

_log = structlog.get_logger()


def unexpected(error: Exception) -> InternalError:
    """Log an error of the server itself, and give the error that a caller gets for it."""
    why = {"why": error.strerror} if isinstance(error, OSError) else {}  # the system's words, such as: disk full
    _log.error("unexpected error", error=type(error).__name__, **why, at=traceback.format_tb(error.__traceback__))
    return failed()


def failed() -> InternalError:
    """Make the error that a caller gets for a logged error of the server."""
    return InternalError("the server failed; its log says more")


def told(error: Exception) -> DragomanError:
    """Give the error that a caller gets: the same error, or an InternalError for an error of the server itself."""
    return error if isinstance(error, DragomanError) else unexpected(error)


def invalid(violations: Sequence[FieldViolation]) -> InvalidRequestError:
    """Make the error of bad fields, at least one."""
    first = violations[0]
    more = f" (and {len(violations) - 1} more)" if len(violations) > 1 else ""
    return InvalidRequestError(f"{first.field}: {first.description}{more}", violations=violations)
