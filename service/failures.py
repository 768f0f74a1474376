"""Errors of ours: logged by their class and place, for what they say may hold a text."""

import traceback

import structlog

from dragoman.errors import DragomanError, InternalError

_log = structlog.get_logger()


def unexpected(error: Exception) -> InternalError:
    """Log an error of ours, and give what a caller is told of it."""
    _log.error("unexpected error", error=type(error).__name__, at=traceback.format_tb(error.__traceback__))
    return failed()


def failed() -> InternalError:
    """Give what a caller is told of an error of ours that is logged."""
    return InternalError("the server failed; its log says more")


def told(error: Exception) -> DragomanError:
    """Give what a caller is told of an error: itself, unless it is one of ours."""
    return error if isinstance(error, DragomanError) else unexpected(error)
