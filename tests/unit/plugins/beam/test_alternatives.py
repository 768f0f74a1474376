"""The best combinations of the choices of segments, against all combinations."""

from functools import reduce
from itertools import product
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.beam.alternatives import Alternatives
from service.decode import FinishReason, Hypothesis, worst
from service.text.alternatives import Alternative, Choice

COUNTS = st.integers(1, 6)
REASONS = st.sampled_from([FinishReason.EOS, FinishReason.LENGTH, FinishReason.REPETITION])


def choices(scores: st.SearchStrategy[float]) -> st.SearchStrategy[list[Choice]]:
    """The choices of one segment, by descending score."""
    hypotheses = st.builds(Hypothesis, st.just([7]), st.integers(-9, 0), scores, REASONS, st.integers(0, 4))
    texts = st.sampled_from(["", "a", "b", "ab", "ba"])
    listed = st.lists(st.builds(Choice, texts, hypotheses), min_size=1, max_size=5)
    return listed.map(lambda each: sorted(each, key=lambda choice: -choice.hypothesis.score))


def segments(
    scores: st.SearchStrategy[float], separators: tuple[str, ...] = (" ", "\n")
) -> st.SearchStrategy[list[tuple[str, list[Choice]]]]:
    return st.lists(st.tuples(st.sampled_from(separators), choices(scores)), max_size=4)


def best_of(count: int, text: list[tuple[str, list[Choice]]]) -> list[Alternative]:
    alternatives = Alternatives(count)
    for between, of_segment in text:
        alternatives.keep(between)
        alternatives.add(of_segment)
    alternatives.keep("-")
    alternatives.keep("!")
    return alternatives.result()


def every(text: list[tuple[str, list[Choice]]]) -> list[Alternative]:
    """All combinations, the best first; of those that read the same, the first."""
    found = []
    for combination in product(*(of_segment for _, of_segment in text)):
        hypotheses = [choice.hypothesis for choice in combination]
        tokens = sum(hypothesis.decoded_tokens for hypothesis in hypotheses)
        found.append(
            Alternative(
                "".join(between + choice.text for (between, _), choice in zip(text, combination, strict=True)) + "-!",
                # In this order: `sum` rounds less from Python 3.12 on.
                reduce(add, (hypothesis.score for hypothesis in hypotheses), 0.0),
                worst({hypothesis.finish_reason for hypothesis in hypotheses}),
                sum(hypothesis.log_probability for hypothesis in hypotheses) / tokens if tokens else 0.0,
            )
        )
    found.sort(key=lambda alternative: -alternative.score)
    first = {each.text: each for each in reversed(found)}
    return [each for each in found if first[each.text] is each]


@given(COUNTS, segments(st.integers(-4, 0)))
def test_they_are_the_best_of_all_combinations(count: int, text) -> None:
    found, expected = best_of(count, text), every(text)
    assert [each.score for each in found] == [each.score for each in expected[:count]]
    best = {each.text: each.score for each in expected}
    assert all(each.score == best[each.text] for each in found)  # of those with the score of the last any may be there


@given(COUNTS, segments(st.floats(-1e3, 1e3)))
def test_their_scores_are_the_best_ones_and_the_first_is_that_of_the_first_choices(count: int, text) -> None:
    found = best_of(count, text)
    assert [each.score for each in found] == [each.score for each in every(text)[:count]]
    assert found[0].text == "".join(between + of_segment[0].text for between, of_segment in text) + "-!"


@given(COUNTS, segments(st.integers(-4, 0), ("", " ")))
def test_none_reads_as_another(count: int, text) -> None:
    found = best_of(count, text)
    assert len({each.text for each in found}) == len(found)
    assert found[0] in every(text)


def test_of_choices_that_read_the_same_the_best_counts() -> None:
    segment = [
        Choice(text, Hypothesis([7], score, score, FinishReason.EOS, 2))
        for text, score in (("a", 0), ("a", -1), ("b", -2))
    ]
    found = best_of(3, [("", segment), (" ", segment)])
    assert [(each.text, each.score) for each in found] == [("a a-!", 0), ("a b-!", -2), ("b a-!", -2)]


def test_a_text_of_very_many_segments_has_alternatives() -> None:
    segment = [
        Choice(text, Hypothesis([7], score, score, FinishReason.EOS, 2)) for text, score in (("a", 0), ("b", -1))
    ]
    first, second = best_of(2, [("", segment)] * 100_000)
    assert first.text == "a" * 100_000 + "-!"
    assert second.text.count("b") == 1
    assert second.score == pytest.approx(-1)
