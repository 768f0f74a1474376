"""Calls on a real mailbox whose engine is the test."""

import asyncio
from types import SimpleNamespace
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from service.calls.call import Call, Part
from service.calls.leg import Leg
from service.calls.text_worker import TextWorker
from service.decode import Decode, FinishReason
from service.options import RequestOptions
from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from service.settings import Settings
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics
from tests.unit.service.calls.played_texts import DEFAULT_OPTIONS, CharacterTranslator

Kind = TypeVar("Kind", bound=Call)


def bound(mailbox: Mailbox) -> Mailbox:
    mailbox.bind(asyncio.get_running_loop())
    mailbox.register_worker()
    return mailbox


def call_of(
    kind: type[Kind],
    intake: Intake,
    *,
    translator: CharacterTranslator | None = None,
    record: CallStats | None = None,
    all_or_nothing: bool = False,
    html: bool = False,
    **arguments: Any,
) -> Kind:
    options = RequestOptions(client="a", all_or_nothing=all_or_nothing, has_tags=html)
    parts = [Part(leg_of(intake, translator, options))]
    return kind(parts, TextWorker(Settings()), Metrics(), record or CallStats("TranslateText"), **arguments)


def leg_of(
    intake: Intake,
    translator: CharacterTranslator | None = None,
    options: RequestOptions = DEFAULT_OPTIONS,
    then: Leg | None = None,
) -> Leg:
    pipeline: Any = SimpleNamespace(translator=translator or CharacterTranslator(), intake=intake)
    return Leg(pipeline, "characters", options, then)


def finish(mailbox: Mailbox, count: int) -> list[Decode]:
    """What an engine does."""
    taken = mailbox.take(0, count, wait=False) or []
    for segment in taken:
        segment.finish(FinishReason.EOS, 0.0)
    mailbox.deliver(taken)
    return taken


def fail_one(mailbox: Mailbox, error: DragomanError) -> None:
    [taken] = mailbox.take(0, 1, wait=False) or []
    taken.fail(error, 0.0)
    mailbox.deliver([taken])
