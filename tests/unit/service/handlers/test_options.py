"""Each option of a message, and what it becomes."""

import pytest

from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext
from service.handlers.options import options_of
from service.handlers.validation import Order
from service.options import Decoding, Priority, RequestOptions
from service.security.callers import Caller

CONTEXT = CallContext(Caller("alice"), deadline_s=7.0)
ORDER = Order(None, "en-GB", "de", None, 5)  # its model is no matter of the options
MESSAGES = [pb.TranslateTextRequest, pb.BatchTranslateTextConfig]


@pytest.mark.parametrize("message", MESSAGES)
def test_without_options_all_but_order_and_context_is_the_default(message: type) -> None:
    assert options_of(message(), ORDER, CONTEXT) == RequestOptions(
        max_target_tokens=5, deadline_s=7.0, client="alice", source_language="en-GB", target_language="de"
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_every_option_of_a_message(message: type) -> None:
    asked = message(mime_type="text/html", options={"mean_log_probability": True, "max_target_tokens": 99})
    options = options_of(asked, ORDER, CONTEXT, wants_deltas=True, all_or_nothing=True)
    assert options == RequestOptions(
        source_language="en-GB",
        target_language="de",
        decoding=Decoding(wants_log_probability=True),
        max_target_tokens=5,
        deadline_s=7.0,
        wants_deltas=True,
        client="alice",
        html=True,
        all_or_nothing=True,
    )


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("default", Priority)
def test_a_priority_that_is_not_asked_for_is_the_default_of_the_method(message: type, default: Priority) -> None:
    priorities = {
        asked: options_of(message(priority=asked), ORDER, CONTEXT, default=default).priority
        for asked in pb.Priority.values()
    }
    assert priorities == {
        pb.PRIORITY_UNSPECIFIED: default,
        pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
        pb.PRIORITY_BULK: Priority.BULK,
    }
