"""Dragoman, translation over gRPC: the clients that other programs import, and the errors of their calls."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.answers import (
        Alternative,
        BatchTranslation,
        DetectedLanguage,
        Model,
        Score,
        SegmentQuality,
        StoredGlossary,
        TokenScore,
        Translation,
        TranslationDelta,
        WordAlignment,
    )
    from dragoman.client import AsyncClient, Client
    from dragoman.errors import (
        AnswerTooLargeError,
        BundleError,
        ConcurrencyLimitedError,
        DataError,
        DeadlineExceededError,
        DeadlineUnreachableError,
        DragomanError,
        DrainingError,
        FieldViolation,
        InternalError,
        InvalidRequestError,
        LoadingError,
        ModelUnavailableError,
        OverloadedError,
        QueueFullError,
        RateLimitedError,
        RequestCancelledError,
        ServerUnavailableError,
        TextFailedError,
        UnauthenticatedError,
        UnknownGlossaryError,
        UnknownLanguagePairError,
        UnknownModelError,
        UnrecognizedError,
    )
    from dragoman.glossary import GlossaryEntry, GlossaryFile
    from dragoman.options import Options

    __version__: str

__all__ = [
    "Alternative",
    "AnswerTooLargeError",
    "AsyncClient",
    "BatchTranslation",
    "BundleError",
    "Client",
    "ConcurrencyLimitedError",
    "DataError",
    "DeadlineExceededError",
    "DeadlineUnreachableError",
    "DetectedLanguage",
    "DragomanError",
    "DrainingError",
    "FieldViolation",
    "GlossaryEntry",
    "GlossaryFile",
    "InternalError",
    "InvalidRequestError",
    "LoadingError",
    "Model",
    "ModelUnavailableError",
    "Options",
    "OverloadedError",
    "QueueFullError",
    "RateLimitedError",
    "RequestCancelledError",
    "Score",
    "SegmentQuality",
    "ServerUnavailableError",
    "StoredGlossary",
    "TextFailedError",
    "TokenScore",
    "Translation",
    "TranslationDelta",
    "UnauthenticatedError",
    "UnknownGlossaryError",
    "UnknownLanguagePairError",
    "UnknownModelError",
    "UnrecognizedError",
    "WordAlignment",
]

_MODULES = ("answers", "client", "errors", "glossary", "options")

if not TYPE_CHECKING:  # else a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a name at its first use: the command line must set a variable before gRPC is imported."""
        if name == "__version__":
            return version(__name__)
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name in __all__:
            for module in map(import_module, (f"{__name__}.{each}" for each in _MODULES)):
                if name in vars(module):
                    globals()[name] = vars(module)[name]
                    return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
