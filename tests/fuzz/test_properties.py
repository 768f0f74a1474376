import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import calls
from tests.fuzz.properties import check_message, check_text


@settings(max_examples=300, deadline=None)
@given(st.text() | st.integers(0).map(lambda seed: calls.text(random.Random(seed))))
def test_any_text(text: str) -> None:
    check_text(text)


@settings(max_examples=300, deadline=None)
@given(st.binary() | st.integers(0).map(lambda seed: b"".join(calls.draw(random.Random(seed)).messages)))
def test_any_bytes(message: bytes) -> None:
    check_message(message)
