"""Dragoman, translation over gRPC: the clients that other programs import, and the errors of their calls."""

from dragoman.answers import Model, Translation, TranslationDelta
from dragoman.client import AsyncClient, Client
from dragoman.errors import (
    BundleError,
    DataError,
    DeadlineExceededError,
    DragomanError,
    DrainingError,
    FieldViolation,
    InternalError,
    InvalidRequestError,
    LoadingError,
    QueueFullError,
    RequestCancelledError,
    ServerUnavailableError,
    UnknownLanguagePairError,
    UnknownModelError,
    UnrecognizedError,
)

__all__ = [
    "AsyncClient",
    "BundleError",
    "Client",
    "DataError",
    "DeadlineExceededError",
    "DragomanError",
    "DrainingError",
    "FieldViolation",
    "InternalError",
    "InvalidRequestError",
    "LoadingError",
    "Model",
    "QueueFullError",
    "RequestCancelledError",
    "ServerUnavailableError",
    "Translation",
    "TranslationDelta",
    "UnknownLanguagePairError",
    "UnknownModelError",
    "UnrecognizedError",
]
