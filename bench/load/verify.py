"""Is every answer under load the answer given alone? What each text becomes alone, and the comparison.

It means something only where the server translates each time: with its result cache on (`--result-cache-mb 0` turns
it off), an answer under load may be the very one that was given alone.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from bench.load.calls import NoAnswerError, Reply
from dragoman.v1 import translation_pb2

# How many differences a report shows.
SHOWN: Final = 5

# Serialized request to its reply; raises a NoAnswerError where there is none.
Translate = Callable[[bytes], Awaitable[Reply]]


class Answer(NamedTuple):
    """What must not depend on who else is served."""

    text: str
    target_tokens: int
    finish_reason: int

    @classmethod
    def of(cls, translation: translation_pb2.TranslatedText) -> "Answer":
        return cls(translation.translated_text, translation.target_tokens, translation.finish_reason)


class Verifier:
    """Learns the answers given alone, then compares those under load."""

    def __init__(self, texts: Sequence[str], texts_per_request: int) -> None:
        self.learnt = 0
        self.compared = 0
        self.different = 0
        self.examples: list[dict[str, Any]] = []  # the first: a text, what it became alone, and under load
        self._texts = texts
        self._texts_per_request = texts_per_request
        self._alone: dict[str, Answer] = {}

    async def learn(self, translate: Translate, template: translation_pb2.TranslateTextRequest) -> None:
        """Send each distinct text alone, the next when the one before is answered."""
        head = template.SerializeToString()
        for text in dict.fromkeys(self._texts):
            content = translation_pb2.TranslateTextRequest(contents=[text]).SerializeToString()
            with suppress(NoAnswerError):
                [translation] = (await translate(head + content)).translations
                if not translation.HasField("text_error"):
                    self._alone[text] = Answer.of(translation)
            self.learnt += 1

    def check(self, request: int, translations: Sequence[translation_pb2.TranslatedText]) -> None:
        first = request * self._texts_per_request
        for index, translation in enumerate(translations, first):
            text = self._texts[index % len(self._texts)]
            alone, loaded = self._alone.get(text), Answer.of(translation)
            if alone is None:
                continue
            self.compared += 1
            if loaded != alone:
                self.different += 1
                if len(self.examples) < SHOWN:
                    self.examples.append({"text": text, "alone": alone._asdict(), "under_load": loaded._asdict()})

    def figures(self) -> dict[str, Any]:
        return {
            "verify_texts": self.learnt,
            "verify_unanswered": self.learnt - len(self._alone),
            "verify_compared": self.compared,
            "verify_different": self.different,
            "verify_examples": self.examples,
        }
