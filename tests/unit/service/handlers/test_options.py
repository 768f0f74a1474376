"""Each option of a message, and what it becomes."""

from typing import Any

import pytest

from dragoman.v1 import translation_pb2 as pb
from service.handlers.options import options_of, priority_of
from service.handlers.route import into_pivot
from service.options import Decoding, Priority, RequestOptions, Sampling, XmlTags
from service.registry.catalog import Choice

CHOSEN = Choice(None, "en-GB", "de")  # its model is no matter of the options
MESSAGES = [pb.TranslateTextRequest, pb.BatchTranslateTextConfig]
PRIORITIES = {pb.TranslateTextRequest: Priority.INTERACTIVE, pb.BatchTranslateTextConfig: Priority.BULK}


def options(asked: pb.TranslateTextRequest | pb.BatchTranslateTextConfig, **found: Any) -> RequestOptions:
    return options_of(asked, CHOSEN, **{"max_target_tokens": 5, "beam_size": 1, **found})


@pytest.mark.parametrize("message", MESSAGES)
def test_without_options_all_but_languages_and_limits_is_the_default(message: type) -> None:
    assert options(message()) == RequestOptions(
        max_target_tokens=5, source_language="en-GB", target_language="de", priority=PRIORITIES[message]
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_every_option_of_a_message(message: type) -> None:
    asked = message(mime_type="text/html", options={"mean_log_probability": True, "max_target_tokens": 99})
    asked.options.alignments = asked.options.quality_estimate = True  # that HTML has none is a matter of the checks
    assert options(asked, prefix_ids=(7,)) == RequestOptions(
        source_language="en-GB",
        target_language="de",
        decoding=Decoding(wants_log_probability=True),
        mean_log_probability=True,
        alignments=True,
        quality_estimate=True,
        max_target_tokens=5,
        priority=PRIORITIES[message],
        has_tags=True,
        prefix_ids=(7,),
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_what_tags_of_xml_mean(message: type) -> None:
    asked = message(mime_type="text/xml", options={"xml_tags": {"splitting": ["p", "q"], "kept": ["x"]}})
    tags = XmlTags(splitting=frozenset(["p", "q"]), kept=frozenset(["x"]))
    assert options(asked).xml == tags
    assert options(message(mime_type="text/xml")).xml == XmlTags()


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize(("asked", "penalty"), [({}, 1.0), ({"length_penalty": 0.0}, 0.0), ({"length_penalty": 2}, 2)])
def test_a_beam_of_a_message(message: type, asked: dict, penalty: float) -> None:
    found = options(message(options={"alternatives": 3, **asked}), beam_size=4)
    assert found.decoding == Decoding(wants_log_probability=True, beam_size=4, length_penalty=penalty, alternatives=3)
    assert (found.alternatives, found.mean_log_probability) == (3, False)


@pytest.mark.parametrize("message", MESSAGES)
def test_one_alternative_of_a_greedy_decode_needs_its_log_probability_and_nothing_else(message: type) -> None:
    found = options(message(options={"alternatives": 1, "length_penalty": 2.0}))
    assert (found.decoding, found.alternatives) == (Decoding(wants_log_probability=True), 1)
    assert found.length_penalty == 2.0  # of segments with terms


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
    found = options(asked, beam_size=size, prefix_ids=(7,))._replace(deadline_s=7.0, client="alice", wants_deltas=True)
    assert into_pivot(found, Choice(None, "fr", "en")) == RequestOptions(
        decoding=Decoding.of(beam_size=size, length_penalty=2.0),
        length_penalty=2.0,
        deadline_s=7.0,
        client="alice",
        source_language="fr",
        target_language="en",
        quality_estimate=True,
    )


@pytest.mark.parametrize("message", MESSAGES)
def test_draws_are_as_they_were_read_and_none_are_made_into_the_pivot_language(message: type) -> None:
    sampling = Sampling(3, temperature=0.5)
    found = options(message(options={"sampling": {"temperature": 0.5}}), sampling=sampling)
    assert found.decoding == Decoding(sampling=sampling)
    assert into_pivot(found, Choice(None, "fr", "en")).decoding == Decoding()


@pytest.mark.parametrize("message", [*MESSAGES, pb.ScoreTextRequest])
def test_a_priority_that_is_not_asked_for_is_that_of_the_method(message: type) -> None:
    assert {asked: priority_of(message(priority=asked)) for asked in pb.Priority.values()} == {
        pb.PRIORITY_UNSPECIFIED: PRIORITIES.get(message, Priority.INTERACTIVE),
        pb.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
        pb.PRIORITY_BULK: Priority.BULK,
    }
