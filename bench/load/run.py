"""One load test from connecting to the report, without arguments, printing or files."""

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import grpc.aio
from google.protobuf.json_format import MessageToDict

from bench.load.figures import summarize
from bench.load.generator import CHANNELS, CONNECT_TIMEOUT_S, TRANSLATE_TEXT, Generator, open_channels, streamed, unary
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.prepare import make_loop, make_workload
from bench.load.progress import show_count, show_progress
from bench.load.samples import Samples
from bench.load.scrape import NoMetricsError, Scraper, result_cache_share, server_series
from bench.load.settings import LoadSettings
from bench.load.timeline import timeline
from bench.load.verify import Verifier
from dragoman.v1 import translation_pb2, translation_pb2_grpc

# The metrics page is asked for at most so often, and so many times: each one costs the server some milliseconds.
_SCRAPE_INTERVAL_S, _SCRAPES = 0.5, 60


class NoServerError(Exception):
    """No server could be asked for its models."""


async def run_load(settings: LoadSettings, texts: list[str]) -> dict[str, Any]:
    """Put the load on the server and return the report, ready for JSON; cancelled, of what there is so far.

    Raises:
        NoServerError: No server could be asked for its models, or for its metrics; no request was sent.
    """
    async with AsyncExitStack() as stack:
        count = min(CHANNELS, settings.concurrency or CHANNELS)
        channels = await open_channels(settings.address, count, stack, settings.access.credentials())
        models = await _list_models(channels, settings)
        scraper = await _scraper(settings)
        loop = make_loop(settings)
        work = make_workload(settings, texts, loop, models)
        verifier = Verifier(work.texts, settings.texts_per_request) if settings.verify_texts else None
        if verifier:
            await _learn(verifier, channels[0], work.template, len(set(work.texts)), settings)
        if scraper:
            await scraper.look(0.0)
        samples = Samples(settings.warmup_s)
        generator = Generator(
            channels,
            work.requests,
            settings.timeout_s,
            samples,
            verifier.check if verifier else None,
            way=partial(streamed if settings.stream else unary, metadata=settings.access.metadata),
            bulk=work.bulk,
        )
        interrupted = await _run_watched(loop, generator, samples, settings, scraper)
        ended_s = generator.now_s()
        if scraper:
            await scraper.look(ended_s)
    return {
        "models": [MessageToDict(model, preserving_proto_field_name=True) for model in models],
        "num_distinct_requests": len(work.requests),
        "interrupted": interrupted,
        **_load_figures(loop, generator, samples, settings, ended_s),
        **summarize(samples, settings.goodput_ms),
        **(verifier.figures() if verifier else {}),
        "timeline": timeline(samples.table()),
        "result_cache_share": result_cache_share(scraper.pages, settings.warmup_s) if scraper else None,
        # The last page came too soon after the one before it: rates over a few milliseconds say nothing.
        "server": server_series(scraper.pages[:-1], settings.warmup_s) if scraper else {},
    }


async def _scraper(settings: LoadSettings) -> Scraper | None:
    if not settings.metrics_address:
        return None
    interval_s = max((settings.duration_s or 0.0) / _SCRAPES, _SCRAPE_INTERVAL_S)
    scraper = Scraper(settings.metrics_address, interval_s)
    try:
        await scraper.check()
    except NoMetricsError as error:
        raise NoServerError(str(error)) from error
    return scraper


async def _learn(
    verifier: Verifier,
    channel: grpc.aio.Channel,
    template: translation_pb2.TranslateTextRequest,
    texts: int,
    settings: LoadSettings,
) -> None:
    """Send every text alone, and show how far that is."""
    call = partial(channel.unary_unary(TRANSLATE_TEXT), timeout=settings.timeout_s, metadata=settings.access.metadata)
    progress = asyncio.create_task(show_count(lambda: verifier.learnt, texts, "texts alone"))
    try:
        await verifier.learn(call, template)
    finally:
        progress.cancel()


async def _list_models(channels: list[grpc.aio.Channel], settings: LoadSettings) -> list[translation_pb2.Model]:
    """Wait until every channel is connected, then ask what the server serves."""
    stub = translation_pb2_grpc.TranslationStub(channels[0])
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await asyncio.gather(*(channel.channel_ready() for channel in channels))
            answer = await stub.ListModels(translation_pb2.ListModelsRequest(), metadata=settings.access.metadata)
    except TimeoutError as error:
        raise NoServerError(f"no server answers at {settings.address}") from error
    except grpc.aio.AioRpcError as error:
        raise NoServerError(f"the server at {settings.address} says {error.code().name}: {error.details()}") from error
    return list(answer.models)


async def _run_watched(
    loop: OpenLoop | ClosedLoop,
    generator: Generator,
    samples: Samples,
    settings: LoadSettings,
    scraper: Scraper | None,
) -> bool:
    """Return when every request has ended or, when cancelled, at once: whether it was cancelled."""
    end_s = settings.warmup_s + (settings.duration_s or 0.0)
    beside = [asyncio.create_task(show_progress(generator, samples, end_s, settings.requests))]
    if scraper:
        beside.append(asyncio.create_task(scraper.run(generator.now_s)))
    try:
        await loop.run(generator.send, generator.now_s)
    except asyncio.CancelledError:
        return True
    finally:
        for task in beside:
            task.cancel()
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
    ended = samples.completed + samples.unanswered + samples.warmup_requests
    return {
        "mode": "open" if isinstance(loop, OpenLoop) else "closed",
        "request_rate": settings.rate,
        "offered_rate": loop.offered_rate(settings.warmup_s, to_s) if isinstance(loop, OpenLoop) else None,
        "max_concurrency": settings.concurrency,
        "max_concurrent_requests": generator.max_in_flight,
        "unfinished": generator.sent - ended,
    }
