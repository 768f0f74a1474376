"""One load test from connecting to the report, without arguments, printing or files."""

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from typing import Any

from google.protobuf.json_format import MessageToDict

from bench.load import grpc_calls
from bench.load.calls import CONNECT_TIMEOUT_S, Calls, NoAnswerError, NoServerError
from bench.load.drive import Watch, drive
from bench.load.figures import summarize
from bench.load.generator import Generator
from bench.load.loops import ClosedLoop, OpenLoop
from bench.load.prepare import LoadSettings, Workload, is_any_model, make_loop, make_workload
from bench.load.progress import show, show_progress
from bench.load.samples import Samples
from bench.load.scrape import Scraper, server_series, totals
from bench.load.timeline import timeline
from bench.load.verify import Verifier
from dragoman.errors import InvalidRequestError
from dragoman.v1 import translation_pb2

# The least interval of metrics pages, and about how many are read: each one costs the server some milliseconds.
_SCRAPE_INTERVAL_S, _SCRAPES = 0.5, 60


async def run_load(settings: LoadSettings, texts: list[str]) -> dict[str, Any]:
    """Put the load on the server and return the report, ready for JSON; cancelled, of what there is so far."""
    async with _calls(settings) as calls:
        models = await _list_models(calls, settings)
        scraper = await _scraper(settings)
        if len(models) > 1 and is_any_model(settings):
            names = ", ".join(model.name for model in models)
            print(f"the server has {names}: {models[0].name} gets the load; --model names another", file=sys.stderr)
        loop = make_loop(settings)
        work = make_workload(settings, texts, loop, models)
        measured = await _measured(calls, settings, work.template, models)
        verifier = await _verifier(work, calls, settings)
        if scraper:
            await scraper.look(0.0)
        samples = Samples(settings.warmup_s)
        generator = Generator(
            calls.asks(stream=settings.stream),
            [calls.encoded(request) for request in work.requests],
            settings.timeout_s,
            samples,
            verifier.check if verifier else None,
            bulk=work.bulk,
        )
        end_s = settings.warmup_s + (settings.duration_s or 0.0)
        watches: list[Watch] = [lambda generator: show_progress(generator, samples)]
        if scraper:
            watches.append(lambda generator: scraper.run(generator.now_s))
        interrupted = False
        try:
            await drive(generator, loop, watches)
        except asyncio.CancelledError:
            interrupted = True
        ended_s = generator.now_s()
        if scraper:
            await scraper.look(ended_s)
    return {
        "models": [MessageToDict(model, preserving_proto_field_name=True) for model in models],
        "measured": measured,
        "num_distinct_requests": len(work.requests),
        "interrupted": interrupted,
        **_asked(loop, settings, min(ended_s, end_s)),
        "max_concurrent_requests": generator.max_in_flight,
        "unfinished": generator.sent - samples.completed - samples.unanswered - samples.warmup_requests,
        **summarize(samples, settings.goodput_ms),
        **(verifier.figures() if verifier else {}),
        "timeline": timeline(samples.table()),
        **(totals(scraper.pages, settings.warmup_s, samples.completed + samples.unanswered) if scraper else {}),
        # The last page came too soon after the one before it: rates over a few milliseconds say nothing.
        "server": server_series(scraper.pages[:-1], settings.warmup_s) if scraper else {},
    }


def _asked(loop: OpenLoop | ClosedLoop, settings: LoadSettings, to_s: float) -> dict[str, Any]:
    """Describe what was asked of the server until a moment; `summarize` describes what it did."""
    return {
        "mode": "open" if isinstance(loop, OpenLoop) else "closed",
        "request_rate": settings.rate,
        "offered_rate": loop.offered_rate(settings.warmup_s, to_s) if isinstance(loop, OpenLoop) else None,
        "max_concurrency": settings.concurrency,
    }


def _calls(settings: LoadSettings) -> AbstractAsyncContextManager[Calls]:
    if settings.http:
        from bench.load import http_calls  # here: it needs an extra

        return http_calls.connected(settings.address, settings.access)
    count = min(grpc_calls.CHANNELS, settings.concurrency or grpc_calls.CHANNELS)
    return grpc_calls.connected(settings.address, count, settings.access)


async def _list_models(calls: Calls, settings: LoadSettings) -> list[translation_pb2.Model]:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await calls.models()
    except TimeoutError as error:
        raise NoServerError(f"no server answers at {settings.address}") from error
    except NoAnswerError as error:
        raise NoServerError(f"the server at {settings.address} says {error}") from error


async def _measured(
    calls: Calls,
    settings: LoadSettings,
    template: translation_pb2.TranslateTextRequest,
    models: list[translation_pb2.Model],
) -> str:
    """Say which model gets the load, and its languages: a text without words, which costs nothing, is sent first.

    Raises:
        InvalidRequestError: the server would refuse every request of the load.
    """
    request = translation_pb2.TranslateTextRequest(contents=[" "])
    request.MergeFrom(template)
    try:
        reply = await calls.asks(stream=False)[0](calls.encoded(request.SerializeToString()), settings.timeout_s)
    except NoAnswerError as error:
        if error.ending.code == InvalidRequestError.code.name:
            raise InvalidRequestError(f"the server at {settings.address} says: {error.ending.message}") from error
        return template.model  # the load itself will show what is wrong
    name = reply.translations[0].model
    model = next((model for model in models if model.name == name), translation_pb2.Model())
    source = template.source_language_code or model.source_language_code or "several languages"
    target = template.target_language_code or model.target_language_code or "several languages"
    return f"{name} ({source} to {target})"


async def _scraper(settings: LoadSettings) -> Scraper | None:
    if not settings.metrics_address:
        return None
    interval_s = max((settings.duration_s or 0.0) / _SCRAPES, _SCRAPE_INTERVAL_S)
    scraper = Scraper(settings.metrics_address, interval_s)
    await scraper.check()
    return scraper


async def _verifier(work: Workload, calls: Calls, settings: LoadSettings) -> Verifier | None:
    """Send every text alone, where answers are to be compared, and show how far that is."""
    if not settings.verify_texts:
        return None
    verifier = Verifier(work.texts, settings.texts_per_request)
    ask = calls.asks(stream=False)[0]
    progress = asyncio.create_task(show(lambda: f"{verifier.learnt} of {len(set(work.texts))} texts alone"))
    try:
        await verifier.learn(lambda request: ask(calls.encoded(request), settings.timeout_s), work.template)
    finally:
        progress.cancel()
    return verifier
