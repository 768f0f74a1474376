"""A real gRPC server around the servicer and a mailbox; the tests themselves play the engine, token by token."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from dragoman import AsyncClient
from dragoman.v1.translation_pb2_grpc import TranslationStub
from service.queue.mailbox import Mailbox
from service.rpc.servicer import Servicer
from service.segment import FinishReason, Segment
from service.telemetry.call_stats import CallStats
from service.telemetry.metrics import Metrics

PATIENCE_S = 120


class House(NamedTuple):
    """One server and its parts."""

    servicer: Servicer
    mailbox: Mailbox
    metrics: Metrics
    records: list[CallStats]
    client: AsyncClient
    stub: TranslationStub

    async def taken(self, count: int) -> list[Segment]:
        """Takes segments as an engine does, as soon as so many wait."""
        await until(lambda: self.mailbox.queued_segments >= count)
        return self.mailbox.take(0, count, wait=False) or []

    def step(self, segment: Segment) -> None:
        """Decodes one token, which is the next of the source, or the end."""
        position = len(segment.target_ids)
        if position == len(segment.source_ids) - 1:
            segment.finish(FinishReason.EOS, 0.0)
        else:
            segment.target_ids.append(segment.source_ids[position])
        if segment.finished or segment.wants_deltas:
            self.mailbox.deliver([segment])

    def exhaust(self, segment: Segment) -> None:
        while not segment.finished:
            self.step(segment)

    def count(self, name: str, *labels: str) -> float:
        return getattr(self.metrics, name).labels(*labels)._value.get()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)
