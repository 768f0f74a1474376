"""The methods of dragoman.v1.Translation, each with its handler and its messages; some are in plugins."""

import inspect
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message

from dragoman.v1 import translation_pb2 as pb
from service import plugins
from service.handlers.translation import TranslationHandlers


class Method(NamedTuple):
    """One method.

    Attributes:
        name: name in the contract.
        handle: takes the handlers, the message and the context of a call; gives one answer, or yields many.
        request: the class of its messages.
        answer: the class of its answers.
        is_fed: whether a call has any number of messages, which `handle` takes together.
    """

    name: str
    handle: Callable[[TranslationHandlers, Any, Any], Any]
    request: type[Message]
    answer: type[Message]
    is_fed: bool = False


_Handlers = TranslationHandlers

TRANSLATE: Final = Method("TranslateText", _Handlers.translate, pb.TranslateTextRequest, pb.TranslateTextResponse)
STREAM: Final = Method("StreamTranslateText", _Handlers.stream, pb.TranslateTextRequest, pb.StreamTranslateTextResponse)
DETECT: Final = Method("DetectLanguage", _Handlers.detect, pb.DetectLanguageRequest, pb.DetectLanguageResponse)
LIST_MODELS: Final = Method("ListModels", _Handlers.list_models, pb.ListModelsRequest, pb.ListModelsResponse)


def all_methods() -> list[Method]:
    """List all methods, including the methods of plugins."""
    return [TRANSLATE, STREAM, DETECT, LIST_MODELS, *plugins.load(plugins.METHODS)]


def unary() -> list[Method]:
    """List the methods of one message and one answer."""
    return [each for each in all_methods() if not (each.is_fed or inspect.isasyncgenfunction(each.handle))]
