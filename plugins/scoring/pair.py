"""A text with a given translation: one segment whose tokens are scored, or the error if it cannot be scored."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from dragoman.errors import FieldViolation, InvalidRequestError
from service.decode import Decode
from service.failures import invalid
from service.options import RequestOptions
from service.segment import Segment
from service.text.document import Document
from service.text.part import Part
from service.text.translator import CHARACTERS_PER_TOKEN, OnProgress, Translator


class Pair(NamedTuple):
    """A text and its translation.

    Attributes:
        source_text: in the source language.
        target_text: in the target language.
        prefix: precedes the field names in errors.
    """

    source_text: str
    target_text: str
    prefix: str = ""

    @property
    def characters(self) -> int:
        """The characters of both texts."""
        return len(self.source_text) + len(self.target_text)

    @property
    def text_bytes(self) -> int:
        """The bytes of both texts in UTF-8."""
        return len(self.source_text.encode()) + len(self.target_text.encode())


def open_pair(
    translator: Translator, pair: Pair, options: RequestOptions, on_progress: OnProgress = lambda segment: None
) -> Document:
    """Make a document from a text with a given translation, to be scored; the text is not yet parsed.

    Its result has the scores of the tokens. Reading it raises InvalidRequestError if the pair cannot be scored.
    """
    return Document(
        _scored_part(translator, pair, options, on_progress),
        translator.tokenizer,
        text_bytes=pair.text_bytes,
        characters=pair.characters,
        unknown_id=translator.manifest.unknown_id,
        wants_log_probability=True,
    )


def _scored_part(
    translator: Translator, pair: Pair, options: RequestOptions, on_progress: OnProgress
) -> Iterator[Part]:
    """Make the single segment of a pair when it is requested.

    Raises:
        InvalidRequestError: a text has more tokens than the model takes, or none.
    """
    manifest, tokenizer = translator.manifest, translator.tokenizer
    frame = translator.frame(options.source_language, options.target_language)
    room = manifest.max_source_tokens - frame.tokens
    source_ids = _ids(tokenizer.encode, f"{pair.prefix}source_text", pair.source_text, room)
    room = manifest.max_target_tokens - 1  # one place for the end-of-sentence token, which is scored too
    target_ids = _ids(tokenizer.encode_target, f"{pair.prefix}target_text", pair.target_text, room)
    scored_ids = (*target_ids, manifest.eos_id)
    decode = Decode(
        source_ids=frame.around(source_ids),
        max_target_tokens=len(scored_ids),
        decoding=options.decoding,
        text_bytes=pair.text_bytes,
        start_ids=frame.start_ids,
        scored_ids=scored_ids,
    )
    yield Part("", Segment(decode, options, len(source_ids), on_progress))


def _ids(encode: Callable[[str], list[int]], field: str, text: str, room: int) -> list[int]:
    most = f"must be at most {room} tokens of the model"
    if len(text) > room * CHARACTERS_PER_TOKEN:
        raise _bad(field, f"{most}, is {len(text)} characters, which are more")
    ids = encode(text)
    if len(ids) > room:
        raise _bad(field, f"{most}, is {len(ids)}")
    if not ids:
        raise _bad(field, "must be at least 1 token of the model, is 0: it is empty or blank")
    return ids


def _bad(field: str, description: str) -> InvalidRequestError:
    return invalid([FieldViolation(field, description)])
