import json
import math
from contextlib import suppress

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2 as pb
from plugins.http import errors, json_messages

FIELDS = [field.camelcase_name for field in pb.TranslateTextRequest.DESCRIPTOR.fields]
WHOLE = "must be a whole number, 0 to 4294967295"
PRIORITIES = "PRIORITY_UNSPECIFIED, PRIORITY_INTERACTIVE, PRIORITY_BULK"
texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(0, 2**32 - 1)
options = st.builds(
    pb.TranslateOptions,
    max_target_tokens=st.none() | numbers,
    mean_log_probability=st.booleans(),
    beam_size=numbers,
    length_penalty=st.none() | st.floats(allow_nan=False),
    target_prefix=texts,
    sampling=st.none() | st.builds(pb.Sampling, temperature=st.floats(0, 10), seed=st.none() | numbers),
    glossary=st.none()
    | st.builds(
        pb.Glossary,
        entries=st.lists(st.builds(pb.GlossaryEntry, source_term=texts, target_terms=st.lists(texts)), max_size=3),
        names=st.lists(texts, max_size=3),
    ),
)
requests = st.builds(
    pb.TranslateTextRequest,
    contents=st.lists(texts),
    source_language_code=texts,
    model=texts,
    options=st.none() | options,
    priority=st.sampled_from(pb.Priority.values()),
    all_or_nothing=st.booleans(),
)


@given(requests, st.booleans())
async def test_a_message_written_and_read_is_the_same(request_: pb.TranslateTextRequest, as_in_proto: bool) -> None:
    assert await json_messages.parse(await json_messages.written(request_), pb.TranslateTextRequest) == request_
    content = json_format.MessageToDict(request_, preserving_proto_field_name=as_in_proto)
    assert json_messages.from_content(content, pb.TranslateTextRequest) == request_


async def test_a_large_message_is_too() -> None:
    answer = pb.TranslateTextResponse(translations=[pb.TranslatedText(translated_text="ä" * 1_000)] * 100)
    body = await json_messages.written(answer)
    assert await json_messages.parse(body, pb.TranslateTextResponse) == answer


def test_no_body_sets_no_field() -> None:
    assert json_messages.from_content({}, pb.ListModelsRequest) == pb.ListModelsRequest()


def objects(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=3), values, max_size=3)


@given(
    objects(
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | objects(inner),
            max_leaves=10,
        )
    )
)
def test_whatever_comes_is_a_message_or_a_clear_error(content: dict[str, object]) -> None:
    with suppress(InvalidRequestError):  # any other error fails the test
        json_messages.from_content(content, pb.TranslateTextRequest)


halves = st.text(st.sampled_from("a\ud800\udfff"))


@given(st.dictionaries(st.sampled_from(FIELDS) | halves, halves | st.lists(halves) | st.dictionaries(halves, halves)))
async def test_half_a_character_anywhere_is_a_clear_error(content: object) -> None:
    try:
        await json_messages.parse(json.dumps(content).encode(), pb.TranslateTextRequest)
    except InvalidRequestError as error:
        errors.answer(error).body.decode()


@given(st.binary())
async def test_bytes_are_a_message_or_a_clear_error(body: bytes) -> None:
    with suppress(InvalidRequestError):  # any other error fails the test
        await json_messages.parse(body, pb.TranslateTextRequest)


@pytest.mark.parametrize(
    ("content", "field", "description"),
    [
        (
            {"content": ["a"]},
            "content",
            "there is no such field, only contents, sourceLanguageCode, targetLanguageCode, model, mimeType, options, "
            "requestId, priority, allOrNothing",
        ),
        (
            {"options": {"beams": 1}},
            "options.beams",
            "there is no such field, only maxTargetTokens, meanLogProbability, beamSize, lengthPenalty, alternatives, "
            "targetPrefix, alignments, sampling, glossary, protectPlaceholders, xmlTags, qualityEstimate",
        ),
        (
            {"options": {"glossary": {"entries": [{"x": 1}]}}},
            "options.glossary.entries[0].x",
            "there is no such field, only sourceTerm, targetTerms, ignoreCase",
        ),
        ({"options": {"beam_size": 1, "beamSize": 2}}, "options.beamSize", "is given twice"),
        ({"contents": "a"}, "contents", "must be a list, is a string"),
        ({"contents": ["a", 1]}, "contents[1]", "must be a string, is a number"),
        ({"contents": ["a", "\ud800"]}, "contents[1]", "half a surrogate pair is no character"),
        ({"allOrNothing": "yes"}, "allOrNothing", "must be a boolean, is a string"),
        ({"options": []}, "options", "must be an object, is a list"),
        ({"options": {"glossary": {"entries": [None]}}}, "options.glossary.entries[0]", "must be an object, is null"),
        ({"options": {"beamSize": -1}}, "options.beamSize", f"{WHOLE}, is -1"),
        ({"options": {"sampling": {"top_k": 2**32}}}, "options.sampling.top_k", f"{WHOLE}, is 4294967296"),
        ({"options": {"beamSize": 1.5}}, "options.beamSize", f"{WHOLE}, is 1.5"),
        ({"options": {"beamSize": "many"}}, "options.beamSize", f"{WHOLE}, is 'many'"),
        ({"options": {"beamSize": []}}, "options.beamSize", f"{WHOLE}, is a list"),
        ({"options": {"lengthPenalty": {}}}, "options.lengthPenalty", "must be a number, is an object"),
        ({"options": {"lengthPenalty": "x"}}, "options.lengthPenalty", "must be a number, is 'x'"),
        ({"options": {"beamSize": math.inf}}, "options.beamSize", f"{WHOLE}, is inf"),
        ({"options": {"lengthPenalty": "a.b at X.y"}}, "options.lengthPenalty", "must be a number, is 'a.b at X.y'"),
        ({"options": {"lengthPenalty": 10**400}}, "options.lengthPenalty", f"must be a number, is 1{'0' * 199}"[:200]),
        ({"priority": "FIRST"}, "priority", f"must be one of {PRIORITIES}, is 'FIRST'"),
        ({"priority": []}, "priority", f"must be one of {PRIORITIES}, is a list"),
    ],
)
def test_an_error_names_the_field(content: object, field: str, description: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        json_messages.from_content(content, pb.TranslateTextRequest)
    assert caught.value.violations == [(field, description)]
    assert caught.value.message == f"{field}: {description}"


@pytest.mark.parametrize("priority", ["Failed to parse x field: ", " at A.options.beamSize", " at A.priority.x"])
def test_a_text_that_looks_like_the_words_of_protobuf_is_a_clear_error(priority: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"must be one of|Invalid enum value"):
        json_messages.from_content({"priority": priority, "options": {}}, pb.TranslateTextRequest)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"\\ud800": 1}', "the body has a name with half a surrogate pair, which is no character"),
        (b'{"options": {"\\udfff": 1}}', "the body has a name with half a surrogate pair, which is no character"),
        (b'{"priority": "\\ud800"}', "priority: half a surrogate pair is no character"),
        (b"[1]", "the body must be a JSON object, is a list"),
        (b"{", "the body is not JSON, at line 1, column 2"),
        (b'{"a":\n  1,}', "the body is not JSON, at line 2, column 5"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "the body has a number with too many digits"),
        (b"\xff", "the body is not UTF-8, at byte 0"),
        (b'{"a": 1, "b": 2, "a": 3}', "a: is given twice"),
        (b'{"a": NaN}', "the body is not JSON: NaN is no number of JSON"),
        (b"[" * 100_000, "the body is nested too deeply"),
        (b"[" * 100_001, "the body may have at most 100000 brackets, has more"),
        (b"[" + b"1," * 50_000 + b"1]", "the body may have at most 50000 values in JSON, has more"),
    ],
)
async def test_what_is_no_json_is_one_clear_error(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await json_messages.parse(body, pb.TranslateTextRequest)
    assert caught.value.message == message


@pytest.mark.parametrize(
    "value",
    [
        '"' + "," * 60_000 + '"',
        r'"\",' + "," * 60_000 + '"',
        r'"\\\",' + "," * 60_000 + r'\\"',
        '"' + r"\"" * 210_000 + ',"',
    ],
)
def test_commas_and_quotes_of_texts_are_no_values(value: str) -> None:
    assert json_messages.load(f'{{"a": [{value}, {value}, 1]}}'.encode()) == {"a": [*[json.loads(value)] * 2, 1]}


@pytest.mark.parametrize("value", ["1", '"a"', '"' + r"\"" + '"', r'"\\"', '"a,"'])
@pytest.mark.parametrize("name", ["", '"{}":'])
def test_too_many_values_are_refused_before_they_are_read(monkeypatch, name: str, value: str) -> None:
    inner = [name.format(number) + value for number in range(json_messages.MAX_VALUES)]
    opened, closed = "{}" if name else "[]"
    most = (opened + ",".join(inner) + closed).encode()
    assert len(json_messages.load(most)) == json_messages.MAX_VALUES
    monkeypatch.setattr("json.loads", lambda *_, **__: pytest.fail("it was read"))
    for more in (inner, [*inner, *inner]):
        body = (opened + ",".join([*more, name + value, name + value]) + closed).encode()
        with pytest.raises(InvalidRequestError, match="at most 50000 values"):
            json_messages.load(body)


def test_numbers_of_values_count_all_levels() -> None:
    content = {"contents": ["a"] * (json_messages.MAX_VALUES - 1)}
    assert json_messages.load(json.dumps(content).encode()) == content
    content["contents"].append("a")
    with pytest.raises(InvalidRequestError):
        json_messages.load(json.dumps(content).encode())
