"""The method: its first message holds the config, all others hold texts."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack
from typing import Final

from dragoman.errors import FieldViolation
from dragoman.v1 import translation_pb2 as pb
from plugins.batch.answers import Batch
from plugins.batch.call import FedCall
from plugins.batch.inbox import Inbox
from plugins.batch.window import Window
from service.failures import invalid
from service.handlers import validation
from service.handlers.context import CallContext
from service.handlers.glossaries import Glossaries
from service.handlers.methods import Method
from service.handlers.route import Route
from service.handlers.translation import TranslationHandlers, name_call
from service.registry.catalog import Catalog
from service.settings import Settings


async def batch(
    handlers: TranslationHandlers, requests: AsyncIterator[pb.BatchTranslateTextRequest], context: CallContext
) -> AsyncGenerator[pb.BatchTranslateTextResponse, None]:
    """Translate texts while more arrive, and answer each when it is finished, or in order.

    Args:
        requests: first the config, then texts; raises a DragomanError for an invalid message.
    """
    gate, settings, planner, inbox = handlers.gate, handlers.settings, handlers.planner, Inbox(requests)
    with handlers.opened(BATCH.name, context) as record, gate.closing(inbox.close):
        gate.catalog()
        async with gate.limited(context):
            first = await inbox.next() or pb.BatchTranslateTextRequest()
        name_call(record, first.config.request_id)

        def choose(catalog: Catalog) -> Route:
            return batch_route(first, catalog, settings, handlers.glossaries)

        with ExitStack() as held:
            route, parts = await planner.one_route(choose, first, context, record, held)
            # No token is shorter than a byte: a single stream without a beam cannot fill the queue of an idle engine.
            window = Window(settings.max_contents, settings.queue_source_tokens)
            call = FedCall(parts, planner.worker, planner.metrics, record, window)
            record.admitted = True
            async with gate.limited(context), call:
                await context.accept()
                stream = Batch(inbox, call, route, record, settings, in_order=first.config.in_order)
                async with stream.reading():
                    while (ready := await stream.ready()) is not None:
                        for answers in await stream.answers(ready):
                            yield stream.message(answers)
                            stream.answered(answers)


BATCH: Final = Method(
    "BatchTranslateText", batch, pb.BatchTranslateTextRequest, pb.BatchTranslateTextResponse, is_fed=True
)


def batch_route(
    request: pb.BatchTranslateTextRequest, catalog: Catalog, settings: Settings, glossaries: Glossaries
) -> Route:
    """Check the first message, and compute its route; raises as `validation.route` does."""
    if not request.HasField("config"):
        raise invalid([FieldViolation("config", "must be set in the first message")])
    if request.contents:
        rule = "must be empty in the first message, which holds the config"
        raise invalid([FieldViolation("contents", rule)])
    source, undetected = validation.undetected(request.config, catalog)
    violations = [FieldViolation(f"config.{field}", description) for field, description in undetected]
    return validation.route(
        request.config, source, catalog, settings, glossaries, violations=violations, prefix="config."
    )
