"""Handlers and a mailbox, alone or behind a real gRPC server; the tests themselves play the engine, token by token."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from dragoman import AsyncClient
from dragoman.v1.translation_pb2_grpc import TranslationStub
from service.decode import Decode, FinishReason
from service.handlers.gate import Gate
from service.handlers.translation import TranslationHandlers
from service.queue.mailbox import Mailbox
from service.telemetry.access_log import CallStats
from service.telemetry.metrics import Metrics

PATIENCE_S = 120


class Records(list[CallStats]):
    """Keeps the records of calls that have ended, in the place of a tracer."""

    def trace(self, record: CallStats, _: object) -> str:
        self.append(record)
        return ""


@dataclass
class PlayedEngine:
    """Handlers and what is behind them, but for the engine."""

    handlers: TranslationHandlers
    gate: Gate
    mailbox: Mailbox
    metrics: Metrics
    records: Records

    async def taken(self, count: int, *, hypotheses: int = 1) -> list[Decode]:
        """Takes segments as an engine does, as soon as so many wait; with slots for the hypotheses of each."""
        await until(lambda: len(self.mailbox.waiting) >= count)
        return self.mailbox.take(0, count * hypotheses, wait=False) or []

    def step(self, segment: Decode) -> None:
        """Decodes one token, which is the next of the source, or the end."""
        position = len(segment.target_ids)
        if position == len(segment.source_ids) - 1:
            segment.finish(FinishReason.EOS, 0.0)
        else:
            segment.target_ids.append(segment.source_ids[position])
        if segment.finished or segment.wants_deltas:
            self.mailbox.deliver([segment])

    def exhaust(self, segment: Decode) -> None:
        while not segment.finished:
            self.step(segment)

    def count(self, name: str, *labels: str) -> float:
        by = ("grpc",) if name == "requests_total" else ()
        [family] = getattr(self.metrics, name).labels(*labels, *by).collect()
        return family.samples[0].value


@dataclass
class ServedEngine(PlayedEngine):
    """The same behind a gRPC server."""

    client: AsyncClient
    stub: TranslationStub


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.001)
