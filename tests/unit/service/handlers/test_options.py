"""Each option of a message, and what it becomes."""

import pytest

from dragoman.v1 import translation_pb2 as pb
from service.handlers.context import CallContext
from service.handlers.options import into_pivot, options_of
from service.handlers.validation import Order
from service.options import Decoding, Priority, RequestOptions, Sampling, XmlTags
from service.registry.catalog import Choice
from service.security.callers import Caller

CONTEXT = CallContext(Caller("alice"), deadline_s=7.0)
ORDER = Order(None, "en-GB", "de", None, 5, 1)  # its model is no matter of the options
MESSAGES = [pb.TranslateTextRequest, pb.BatchTranslateTextConfig]


@pytest.mark.parametrize("message", MESSAGES)
def test_without_options_all_but_order_and_context_is_the_default(message: type) -> None:
    assert options_of(message(), ORDER, CONTEXT) == RequestOptions(
        max_target_tokens=5, deadline_s=7.0, client="alice", source_language="en-GB", target_language="de"
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_every_option_of_a_message(message: type) -> None:
    asked = message(mime_type="text/html", options={"mean_log_probability": True, "max_target_tokens": 99})
    asked.options.alignments = True  # that HTML has none is a matter of the checks
    options = options_of(asked, ORDER, CONTEXT, wants_deltas=True, all_or_nothing=True)
    assert options == RequestOptions(
        source_language="en-GB",
        target_language="de",
        decoding=Decoding(wants_log_probability=True),
        mean_log_probability=True,
        alignments=True,
        max_target_tokens=5,
        deadline_s=7.0,
        wants_deltas=True,
        client="alice",
        html=True,
        all_or_nothing=True,
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_what_tags_of_xml_mean(message: type) -> None:
    asked = message(mime_type="text/xml", options={"xml_tags": {"splitting": ["p", "q"], "kept": ["x"]}})
    tags = XmlTags(splitting=frozenset(["p", "q"]), kept=frozenset(["x"]))
    assert options_of(asked, ORDER, CONTEXT).xml == tags
    assert options_of(message(mime_type="text/xml"), ORDER, CONTEXT).xml == XmlTags()


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(("asked", "penalty"), [({}, 1.0), ({"length_penalty": 0.0}, 0.0), ({"length_penalty": 2}, 2)])
def test_a_beam_of_a_message(message: type, asked: dict, penalty: float) -> None:
    options = options_of(message(options={"alternatives": 3, **asked}), ORDER._replace(beam_size=4), CONTEXT)
    assert options.decoding == Decoding(wants_log_probability=True, beam_size=4, length_penalty=penalty, alternatives=3)
    assert (options.alternatives, options.mean_log_probability) == (3, False)


@pytest.mark.parametrize("message", MESSAGES)
def test_one_alternative_of_a_greedy_decode_needs_its_log_probability_and_nothing_else(message: type) -> None:
    options = options_of(message(options={"alternatives": 1, "length_penalty": 2.0}), ORDER, CONTEXT)
    assert (options.decoding, options.alternatives) == (Decoding(wants_log_probability=True), 1)


@pytest.mark.parametrize("size", [1, 4])
def test_texts_on_their_way_into_the_pivot_language_have_the_beam_and_no_alternatives(size: int) -> None:
    asked = pb.TranslateTextRequest(
        options={
            "alternatives": size,
            "length_penalty": 2.0,
            "mean_log_probability": True,
            "max_target_tokens": 7,
            "quality_estimate": True,
        }
    )
    options = options_of(asked, ORDER._replace(beam_size=size), CONTEXT, wants_deltas=True)
    assert into_pivot(options, Choice(None, "fr", "en")) == RequestOptions(
        decoding=Decoding.of(beam_size=size, length_penalty=2.0),
        deadline_s=7.0,
        client="alice",
        source_language="fr",
        target_language="en",
        quality_estimate=True,
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_draws_are_those_of_the_order_and_none_are_made_into_the_pivot_language(message: type) -> None:
    order = ORDER._replace(sampling=Sampling(3, temperature=0.5))
    options = options_of(message(options={"sampling": {"temperature": 0.5}}), order, CONTEXT)
    assert options.decoding == Decoding(sampling=Sampling(3, temperature=0.5))
    assert into_pivot(options, Choice(None, "fr", "en")).decoding == Decoding()


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
