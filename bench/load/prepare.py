"""A load: its settings, and what it sends and when, drawn and serialized before it begins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

import numpy as np

from bench.load.loops import ClosedLoop, OpenLoop, poisson_arrivals
from bench.load.texts import serialize_requests
from bench.load.workload import repeated
from dragoman.access import Access
from dragoman.v1 import translation_pb2

# Requests that are drawn where a load ends by the clock and not by their number: then they begin again.
_DRAWN_REQUESTS = 20_000
# Serialized messages that are joined are one merged message.
_BULK = translation_pb2.TranslateTextRequest(priority=translation_pb2.PRIORITY_BULK).SerializeToString()


@dataclass(frozen=True)
class LoadSettings:
    """A load. One of `rate` and `concurrency` is set, and one of `duration_s` and `requests`."""

    address: str
    rate: float | None = None  # open loop: requests due per second, on average; needs `duration_s`
    concurrency: int | None = None  # closed loop: requests that are unanswered at any moment
    duration_s: float | None = None
    requests: int | None = None
    warmup_s: float = 0.0
    texts_per_request: int = 1
    source_language: str = ""
    target_language: str = ""
    model: str = ""  # sent with each request; empty, and no language either: the first model of the server
    timeout_s: float = 30.0
    seed: int = 0
    # How many distinct texts are sent, each first alone, and every later answer is compared with that one; 0: all, and
    # nothing is compared.
    verify_texts: int = 0
    repeat_share: float = 0.0  # of the texts: that are asked for again and again
    bulk_share: float = 0.0  # of the requests: that are of the priority bulk
    beam_size: int = 0  # sent with each request; 0: the server's default
    stream: bool = False
    goodput_ms: float | None = None  # the longest latency of a good answer; None: any
    metrics_address: str | None = None  # of the server's metrics, to follow them; None: they are not asked for
    access: Access = field(default_factory=Access)
    http: bool = False


@dataclass(frozen=True)
class Workload:
    """What is sent."""

    template: translation_pb2.TranslateTextRequest  # everything of the requests but their texts and their priority
    texts: list[str]
    requests: list[bytes]
    bulk: frozenset[int]  # the numbers of those that are of the priority bulk


def make_loop(settings: LoadSettings) -> OpenLoop | ClosedLoop:
    """Make the loop of a load, which says when requests are sent."""
    if settings.rate is not None and settings.duration_s is not None:
        return OpenLoop(poisson_arrivals(settings.rate, settings.warmup_s + settings.duration_s, settings.seed))
    return ClosedLoop(
        concurrency=settings.concurrency or 1,
        warmup_s=settings.warmup_s,
        end_s=math.inf if settings.duration_s is None else settings.warmup_s + settings.duration_s,
        requests=settings.requests,
    )


def make_workload(
    settings: LoadSettings, texts: Sequence[str], loop: OpenLoop | ClosedLoop, models: Sequence[translation_pb2.Model]
) -> Workload:
    template = _template(settings, models)
    drawn = _draw_texts(settings, texts, loop)
    requests = serialize_requests(drawn, settings.texts_per_request, template)
    chosen = np.random.default_rng(settings.seed).random(len(requests)) < settings.bulk_share
    bulk = frozenset(np.flatnonzero(chosen).tolist())
    for number in bulk:
        requests[number] += _BULK
    return Workload(template, drawn, requests, bulk)


def is_any_model(settings: LoadSettings) -> bool:
    """Tell whether a load says nothing of its model: then the first of the server gets it."""
    return not (settings.model or settings.source_language or settings.target_language)


def _template(settings: LoadSettings, models: Sequence[translation_pb2.Model]) -> translation_pb2.TranslateTextRequest:
    return translation_pb2.TranslateTextRequest(
        source_language_code=settings.source_language,
        target_language_code=settings.target_language,
        model=models[0].name if models and is_any_model(settings) else settings.model,
        options=translation_pb2.TranslateOptions(beam_size=settings.beam_size) if settings.beam_size else None,
    )


def _draw_texts(settings: LoadSettings, texts: Sequence[str], loop: OpenLoop | ClosedLoop) -> list[str]:
    count = _requests(settings, loop) * settings.texts_per_request
    if settings.verify_texts:
        texts = list(dict.fromkeys(texts))[: settings.verify_texts]
    if settings.repeat_share:
        chosen = repeated(len(texts), count, settings.repeat_share, settings.seed)
        texts = [texts[index] for index in chosen.tolist()]
    if settings.bulk_share:  # of a few requests it would be a share of a few
        texts = list(islice(cycle(texts), max(count, len(texts))))
    return list(texts)


def _requests(settings: LoadSettings, loop: OpenLoop | ClosedLoop) -> int:
    """Estimate how many requests there will be."""
    if isinstance(loop, OpenLoop):
        return max(len(loop.arrivals_s), 1)
    return settings.requests if settings.requests and not settings.warmup_s else _DRAWN_REQUESTS
