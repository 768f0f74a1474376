"""Texts each character of which is a segment, and the model that a call has for them."""

import threading
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

from service.decode import Decode
from service.options import RequestOptions
from service.segment import Segment
from service.text.document import Document
from service.text.part import Part
from service.text.translator import OnProgress

DEFAULT_OPTIONS = RequestOptions(client="a")


class CharacterTranslator:
    """Makes of each character of a text a segment unlike all others, and says what it has read.

    A test may make it wait, and have a text fail: `!` cannot be read.
    """

    def __init__(self, error: Exception | None = None, segment_tokens: int = 2, writes: str = "x") -> None:
        self.read: list[str] = []
        self.threads: set[int] = set()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self._error = error
        self._segment_tokens = segment_tokens
        self._writes = writes
        self._ids = count(3)

    def prepare(self, text: str, *arguments: Any) -> Document:
        document = self.open(text, *arguments)
        document.read_all()
        return document

    def open(
        self,
        text: str,
        options: RequestOptions = DEFAULT_OPTIONS,
        on_progress: OnProgress = lambda _: None,
        field: str = "text",
    ) -> Document:
        return Document(
            self._parts(text, options, on_progress),
            SimpleNamespace(decode=lambda ids: self._writes),  # type: ignore[arg-type]
            text_bytes=len(text),
            characters=len(text),
            unknown_id=1,
            wants_log_probability=False,
        )

    def _parts(self, text: str, options: RequestOptions, on_progress: OnProgress) -> Iterator[Part]:
        for character in text:
            self.read.append(character)
            self.threads.add(threading.get_ident())
            self.may_go_on.wait(60)
            if character == "!" and self._error is not None:
                raise self._error
            ids = [next(self._ids)] * (self._segment_tokens - 1)
            yield Part("", Segment(Decode([*ids, 2], 8, text_bytes=1), options, on_progress=on_progress))
