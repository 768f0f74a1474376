"""The beginning of a body, in which a key is looked for."""

import json

from hypothesis import given
from hypothesis import strategies as st

from plugins.protocols.form import begun_object

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
