"""Errors of the server itself: logged by class and place, since the message of an error may hold a text."""

import traceback

import structlog

from dragoman.errors import DragomanError, InternalError

_log = structlog.get_logger()


def unexpected(error: Exception) -> InternalError:
    """Log an error of the server itself, and give the error that a caller gets for it."""
    why = {"why": error.strerror} if isinstance(error, OSError) else {}  # the system's words, such as: disk full
    _log.error("unexpected error", error=type(error).__name__, **why, at=traceback.format_tb(error.__traceback__))
    return failed()


def failed() -> InternalError:
    """Give what a caller is told of an error of ours that is logged."""
    return InternalError("the server failed; its log says more")


def told(error: Exception) -> DragomanError:
    """Give the error that a caller gets: the same error, or an InternalError for an error of the server itself."""
    return error if isinstance(error, DragomanError) else unexpected(error)
