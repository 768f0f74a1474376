"""One load test from connecting to the report, without arguments, printing or files."""

import asyncio
import math
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import grpc.aio
from google.protobuf.json_format import MessageToDict

from bench.arrivals import poisson_arrivals
from bench.generator import TRANSLATE_TEXT, Generator, open_channels
from bench.loops import ClosedLoop, OpenLoop
from bench.progress import show_count, show_progress
from bench.report import summarize
from bench.samples import Samples
from bench.texts import serialize_requests
from bench.verify import Verifier, distinct
from dragoman.v1 import translation_pb2, translation_pb2_grpc

# One HTTP/2 connection is one thread's work in gRPC: a few keep the client from being what is measured.
_CHANNELS = 4
_CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class LoadSettings:
    """A load. One of `rate` and `concurrency` is set, and one of `duration_s` and `requests`.

    Attributes:
        address: Where the server is, as gRPC names it.
        rate: Open loop: requests due per second, on average; needs `duration_s`.
        concurrency: Closed loop: requests that are unanswered at any moment.
        duration_s: How long the load lasts after the warm-up.
        requests: How many requests are sent after the warm-up.
        warmup_s: How long the load lasts before any request counts.
        texts_per_request: Texts in each request.
        source_language: Sent with each request; may be empty.
        target_language: Sent with each request; may be empty.
        model: Sent with each request; empty, and no language either: the first model of the server.
        timeout_s: When a request that is not answered fails with DEADLINE_EXCEEDED.
        seed: Of the arrivals of the open loop.
        verify_texts: Only so many distinct texts are sent, each first alone, and every later answer is compared
            with that one; 0: all texts, and nothing is compared.
    """

    address: str
    rate: float | None = None
    concurrency: int | None = None
    duration_s: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    texts_per_request: int = 1
    source_language: str = ""
    target_language: str = ""
    model: str = ""
    timeout_s: float = 30.0
    seed: int = 0
    verify_texts: int = 0


class NoServerError(Exception):
    """No server could be asked for its models."""


async def run_load(settings: LoadSettings, texts: list[str]) -> dict[str, Any]:
    """Puts the load on the server and returns the report, ready for JSON; cancelled, of what there is so far.

    Raises:
        NoServerError: No server could be asked for its models; no request was sent.
    """
    async with AsyncExitStack() as stack:
        count = min(_CHANNELS, settings.concurrency or _CHANNELS)
        channels = await open_channels(settings.address, count, stack)
        models = await _list_models(channels, settings.address)
        template = _template(settings, models)
        if settings.verify_texts:
            texts = distinct(texts, settings.verify_texts)
        requests = serialize_requests(texts, settings.texts_per_request, template)
        verifier = Verifier(texts, settings.texts_per_request) if settings.verify_texts else None
        if verifier:
            await _learn(verifier, channels[0], template, len(texts), settings.timeout_s)
        loop = _open_loop(settings) or _closed_loop(settings)
        samples = Samples(settings.warmup_s)
        check = verifier.check if verifier else None
        generator = Generator(channels, requests, settings.timeout_s, samples, check)
        interrupted = await _run_with_progress(loop, generator, samples, settings)
        ended_s = generator.now_s()
    return {
        "models": [MessageToDict(model, preserving_proto_field_name=True) for model in models],
        "num_distinct_requests": len(requests),
        "interrupted": interrupted,
        **_load_figures(loop, generator, samples, settings, ended_s),
        **summarize(samples),
        **(verifier.figures() if verifier else {}),
    }


async def _learn(
    verifier: Verifier,
    channel: grpc.aio.Channel,
    template: translation_pb2.TranslateTextRequest,
    texts: int,
    timeout_s: float,
) -> None:
    """Sends every text alone, and shows how far that is."""
    call = channel.unary_unary(TRANSLATE_TEXT)
    progress = asyncio.create_task(show_count(lambda: verifier.learnt, texts, "texts alone"))
    try:
        await verifier.learn(lambda request: call(request, timeout=timeout_s), template)
    finally:
        progress.cancel()


async def _list_models(channels: list[grpc.aio.Channel], address: str) -> list[translation_pb2.Model]:
    """Waits until every channel is connected, then asks what the server serves."""
    stub = translation_pb2_grpc.TranslationStub(channels[0])
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            await asyncio.gather(*(channel.channel_ready() for channel in channels))
            answer = await stub.ListModels(translation_pb2.ListModelsRequest())
    except TimeoutError as error:
        raise NoServerError(f"no server answers at {address}") from error
    except grpc.aio.AioRpcError as error:
        raise NoServerError(f"the server at {address} says {error.code().name}: {error.details()}") from error
    return list(answer.models)


def _template(settings: LoadSettings, models: list[translation_pb2.Model]) -> translation_pb2.TranslateTextRequest:
    """The requests without their texts."""
    chosen = settings.model or settings.source_language or settings.target_language
    return translation_pb2.TranslateTextRequest(
        source_language_code=settings.source_language,
        target_language_code=settings.target_language,
        model=settings.model if chosen or not models else models[0].name,
    )


def _open_loop(settings: LoadSettings) -> OpenLoop | None:
    if settings.rate is None or settings.duration_s is None:
        return None
    return OpenLoop(poisson_arrivals(settings.rate, settings.warmup_s + settings.duration_s, settings.seed))


def _closed_loop(settings: LoadSettings) -> ClosedLoop:
    return ClosedLoop(
        concurrency=settings.concurrency or 1,
        warmup_s=settings.warmup_s,
        end_s=math.inf if settings.duration_s is None else settings.warmup_s + settings.duration_s,
        requests=settings.requests,
    )


async def _run_with_progress(
    loop: OpenLoop | ClosedLoop, generator: Generator, samples: Samples, settings: LoadSettings
) -> bool:
    """Returns when every request has ended or, when cancelled, at once: whether it was cancelled."""
    end_s = settings.warmup_s + (settings.duration_s or 0.0)
    progress = asyncio.create_task(show_progress(generator, samples, end_s, settings.requests))
    try:
        await loop.run(generator.send, generator.now_s)
    except asyncio.CancelledError:
        return True
    finally:
        progress.cancel()
    return False


def _load_figures(
    loop: OpenLoop | ClosedLoop,
    generator: Generator,
    samples: Samples,
    settings: LoadSettings,
    ended_s: float,
) -> dict[str, Any]:
    """What was asked of the server; `summarize` has what it did."""
    to_s = min(ended_s, settings.warmup_s + (settings.duration_s or 0.0))
    ended = samples.completed + samples.failed + samples.warmup_requests
    return {
        "mode": "open" if isinstance(loop, OpenLoop) else "closed",
        "request_rate": settings.rate,
        "offered_rate": loop.offered_rate(settings.warmup_s, to_s) if isinstance(loop, OpenLoop) else None,
        "max_concurrency": settings.concurrency,
        "max_concurrent_requests": generator.max_in_flight,
        "unfinished": generator.sent - ended,
    }
