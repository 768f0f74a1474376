"""Which texts of a call go to which model: all to one where the request says their language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.v1 import translation_pb2 as pb
from service.calls.text_worker import Result
from service.handlers.answer import translated
from service.handlers.validation import Order
from service.options import RequestOptions
from service.text.detection import Guess


class Part(NamedTuple):
    """Texts that go the same way.

    Attributes:
        order: what is asked for of them.
        options: likewise, for the engine.
        numbers: of the texts.
    """

    order: Order
    options: RequestOptions
    numbers: Sequence[int]


@dataclass(frozen=True)
class Plan:
    """The ways of all texts of a call.

    Attributes:
        parts: of texts; empty where no text can be translated.
        refused: the texts of none of them, and why.
        languages: that were detected, of all texts, None for one that says nothing; empty where none were to be.
    """

    parts: Sequence[Part]
    refused: Mapping[int, DragomanError] = field(default_factory=dict)
    languages: Sequence[Guess | None] = ()

    @property
    def path(self) -> str:
        """The names of the models, for people."""
        return ",".join(part.order.path for part in self.parts)

    def answer(self, number: int, result: Result) -> pb.TranslatedText:
        """Write the answer for one text."""
        detected = self.languages[number] if self.languages else None
        order = self._orders.get(number)
        if order is None:
            return translated(result, "", beam_size=0, detected=detected)
        return translated(result, *order.names, beam_size=order.beam_size, seed=order.seed, detected=detected)

    @cached_property
    def _orders(self) -> Mapping[int, Order]:
        return {number: part.order for part in self.parts for number in part.numbers}
