"""Parameters, and what is wrong with them; the beginning of a body, in which a key is looked for."""

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from dragoman.errors import InvalidRequestError
from plugins.http import urlencoded
from plugins.http.methods import JSON
from plugins.protocols import form
from plugins.protocols.form import begun_object
from plugins.protocols.multipart import File

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.dictionaries(
        st.text(st.characters(exclude_characters='"\\\\', exclude_categories=["C"])), texts | st.lists(texts)
    )
)
def test_of_a_beginning_the_fields_that_are_whole_are_read(content: dict[str, object]) -> None:
    body = json.dumps(content, ensure_ascii=False).encode()
    assert begun_object(body) == content
    for end in range(len(body)):
        assert begun_object(body[:end]).items() <= content.items()


@given(st.binary(max_size=100))
def test_any_bytes_are_a_beginning(body: bytes) -> None:
    begun_object(body)
    begun_object(b'{"a":' + body)


@pytest.mark.parametrize(
    ("read", "value", "said"),
    [
        (form.texts_of, None, "the parameter is missing"),
        (form.texts_of, [], "must not be empty"),
        (form.texts_of, 0, "must be a string, is 0"),
        (form.texts_of, File("x", b"y"), "must be a string, is a file"),
        (form.needed, None, "the parameter is missing"),
        (form.needed, "", "must not be empty"),
        (form.needed, ["en", "de"], "must be one string, is a list"),
        (form.flag_of, "maybe", "must be true or false, is 'maybe'"),
        (form.flag_of, "x" * 1000, f"must be true or false, is '{'x' * 39}"),
        (form.flag_of, {}, "must be true or false, is an object"),
    ],
)
def test_a_bad_value_is_named(read: Callable[..., object], value: object, said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read({"q": value}, "q")
    assert caught.value.message == f"q: {said}"


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        (b"text=", ([""], False)),
        (b"text=&text=Hi", (["", "Hi"], True)),
        (b'{"text": ""}', ([""], False)),
        (b'{"text": [""]}', ([""], True)),
    ],
)
async def test_a_text_may_be_empty_however_it_is_written(body: bytes, texts: tuple[list[str], bool]) -> None:
    kind = JSON if body.startswith(b"{") else urlencoded.KIND
    scope = {"type": "http", "query_string": b"", "headers": [(b"content-type", kind.encode())]}
    given = await form.parameters(Request(scope), body, asyncio.Lock())
    assert form.texts_of(given, "text") == texts


@pytest.mark.parametrize(("value", "is_"), [(16, "16"), (1.5, "1.5"), ("-1", "'-1'"), (True, "a boolean")])
def test_a_number_beyond_its_limit_is_named(value: object, is_: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"n: must be a whole number, 0 to 15, is {is_}$"):
        form.number_of({"n": value}, "n", 15)
