"""Texts that are too large, beams and prefixes that cannot be, and the one error of several."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import FieldViolation, InternalError, InvalidRequestError
from service.calls.limits import bad_beam, bad_prefix, bad_sampling, bad_texts, invalid, raise_if_any, refuse_any
from service.options import Sampling
from service.settings import Settings
from service.text.translator import Translator

LIMIT_BYTES = 12
SETTINGS = Settings(max_text_bytes=LIMIT_BYTES)


@given(st.lists(st.text("aé你😀", max_size=14), max_size=6), st.integers(0, 99))
def test_texts_over_the_limit_are_found_by_their_numbers(texts: list[str], first: int) -> None:
    bad = bad_texts(enumerate(texts, first), SETTINGS)
    sizes = {number: len(text.encode()) for number, text in enumerate(texts, first)}
    assert bad.keys() == {number for number, size in sizes.items() if size > LIMIT_BYTES}
    for number, error in bad.items():
        expected = FieldViolation(f"contents[{number}]", f"must be at most {LIMIT_BYTES} bytes, is {sizes[number]}")
        assert error.violations == [expected]


def test_a_call_is_refused_for_all_its_bad_texts_at_once() -> None:
    refuse_any([])
    errors = list(bad_texts(enumerate(["a" * 13, "a", "b" * 14]), SETTINGS).values())
    with pytest.raises(InvalidRequestError, match=r"contents\[0\]: .* \(and 1 more\)") as refused:
        refuse_any(errors)
    assert [violation.field for violation in refused.value.violations] == ["contents[0]", "contents[2]"]


def test_an_error_of_another_kind_comes_first() -> None:
    with pytest.raises(InternalError, match="ours"):
        refuse_any([invalid([FieldViolation("contents[0]", "x")]), InternalError("ours")])


def test_nothing_wrong_is_no_error() -> None:
    raise_if_any([])
    with pytest.raises(InvalidRequestError, match="a: b"):
        raise_if_any([FieldViolation("a", "b")])


@given(st.integers(0, 20), st.floats(), st.integers(0, 20), st.integers(1, 32), st.booleans())
def test_a_beam_is_served_or_what_is_wrong_with_it_is_named(
    size: int, penalty: float, wanted: int, slots: int, sampled: bool
) -> None:
    limit = 1 if sampled else min(16, slots)
    bad = {"options.beam_size": size > limit, "options.alternatives": wanted > min(size or limit, limit)}
    bad["options.length_penalty"] = not -10 <= penalty <= 10
    found = [field for field, _ in bad_beam(size, penalty, wanted, slots, sampled=sampled)]
    assert found == [field for field, wrong in bad.items() if wrong]


@pytest.mark.parametrize(("slots", "most"), [(3, "3, the number of slots"), (16, "16"), (32, "16")])
def test_the_limit_of_a_beam_and_where_it_comes_from_are_said(slots: int, most: str) -> None:
    assert [said for _, said in bad_beam(17, 1.0, 0, slots)] == [f"must be at most {most}, is 17"]
    assert [said for _, said in bad_beam(0, 1.0, 17, slots)] == [f"must be at most {most}, is 17"]


@given(st.floats(), st.floats())
def test_draws_are_served_or_what_is_wrong_with_them_is_named(temperature: float, top_p: float) -> None:
    bad = {"temperature": not 0.01 <= temperature <= 10, "top_p": not 0 < top_p <= 1}
    found = [field for field, _ in bad_sampling(Sampling(0, temperature=temperature, top_p=top_p))]
    assert found == [f"options.sampling.{field}" for field, wrong in bad.items() if wrong]


@pytest.mark.parametrize(
    ("target_prefix", "said"),
    [
        ("", None),
        ("Guten", None),
        ("G" * 4_097, "must be at most 4096 bytes, is 4097"),
        ("Guten", "must have fewer tokens than a translation may, 2, has "),
        (" Guten", "must read the same in the pieces of the model"),
    ],
)
def test_a_prefix_is_taken_or_what_is_wrong_with_it_is_named(manifest, tokenizer, target_prefix, said) -> None:
    limit_tokens = 2 if said and "fewer" in said else manifest.max_target_tokens
    found = list(bad_prefix(target_prefix, Translator(manifest, tokenizer), limit_tokens))
    assert [field for field, _ in found] == (["options.target_prefix"] if said else [])
    assert all(description.startswith(said) for _, description in found)
