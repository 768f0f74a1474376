"""What one and two real replicas cost, each with one thread on one core, in processor time."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from os import sched_getaffinity
from pathlib import Path
from typing import Final, NamedTuple

import grpc
import numpy as np

from bench import metrics_page
from bench.load.channels import connected
from bench.load.drive import drive
from bench.load.generator import Generator
from bench.load.grpc_calls import GrpcCalls
from bench.load.loops import ClosedLoop
from bench.load.samples import Samples
from bench.load.texts import serialize_requests
from bench.log import Log
from bench.processor_time import processor_s
from bench.server_process import NOTHING_FREE, Running, ServerError, running, serve_command
from dragoman.bundle import Manifest
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

SLOTS: Final = 32  # the server's default, for one thread
_CLIENTS: Final = (1, 2, 4, 8, 16, 32, 48)
_BUSY_CLIENTS: Final = 48
_REFUSED_CLIENTS: Final = 64
_TIMEOUT_S: Final = 30.0


class Sentence(NamedTuple):
    """What one sentence takes by itself.

    Attributes:
        alone_s: of the core, for a call of it on an idle replica: the least of all rounds.
    """

    source_tokens: int
    alone_s: float


class Occupancy(NamedTuple):
    """What a call costs beside others.

    Attributes:
        inside: calls in the server, on average.
    """

    clients: int
    inside: float
    cost_s: float


class Scale(NamedTuple):
    """What a number of replicas costs."""

    replicas: int
    cost_s: float
    calls_per_s: float


class Measured(NamedTuple):
    """All of it.

    Attributes:
        refusal_s: of the core, for a call that is refused: one that names no model of the server.
    """

    sentences: list[Sentence]
    occupancies: list[Occupancy]
    refusal_s: float
    scales: list[Scale]


def measure(bundle: Path, texts: Sequence[str], seconds: float, rounds: int, log: Log) -> Measured:
    """Measure everything.

    Args:
        rounds: of each, of which the one with the least cost counts: others use the machine too.

    Raises:
        BundleError: there is no bundle.
        ServerError: a server did not start, or refused a call.
    """
    requests = serialize_requests(list(texts), 1, pb.TranslateTextRequest(model=Manifest.read(bundle).name))
    unknown = [pb.TranslateTextRequest(contents=texts[:1], model="no/such/model").SerializeToString()]
    command = serve_command("--models", bundle, "--threads", "1", "--slots", str(SLOTS), *NOTHING_FREE)
    cores = sorted(sched_getaffinity(0))
    with running(command, cores[:1]) as first, running(command, cores[-1:]) as second:
        log(f"replicas on cores {cores[0]} and {cores[-1]}; the load shares the cores")
        both = [first, second]
        _load(both, requests, ClosedLoop(2 * _BUSY_CLIENTS, 0.0, seconds, None))  # warm
        sentences = _alone(first, requests, rounds)
        log(f"{len(sentences)} sentences alone: {1e3 * np.mean([each.alone_s for each in sentences]):.2f} ms")
        occupancies = [
            min((_occupancy(first, requests, clients, seconds) for _ in range(rounds)), key=lambda one: one.cost_s)
            for clients in _CLIENTS
        ]
        log("beside others, ms: " + ", ".join(f"{1e3 * each.cost_s:.2f}" for each in occupancies))
        refusal_s = min(_cost([first], unknown, _REFUSED_CLIENTS, seconds).cost_s for _ in range(rounds))
        in_turn = [
            [_cost(servers, requests, len(servers) * _BUSY_CLIENTS, seconds) for servers in ([first], both)]
            for _ in range(rounds)
        ]
    scales = [min(turns, key=lambda one: one.cost_s) for turns in zip(*in_turn, strict=True)]
    return Measured(sentences, occupancies, refusal_s, scales)


def _alone(server: Running, requests: Sequence[bytes], rounds: int) -> list[Sentence]:
    with grpc.insecure_channel(server.address) as channel:
        translate = TranslationStub(channel).TranslateText

        def call(request: pb.TranslateTextRequest) -> Sentence:
            before_s = processor_s(server.process.pid)
            answer = translate(request, timeout=_TIMEOUT_S)
            return Sentence(answer.translations[0].source_tokens, processor_s(server.process.pid) - before_s)

        messages = [pb.TranslateTextRequest.FromString(request) for request in requests]
        passes = [[call(message) for message in messages] for _ in range(rounds)]
    return [min(calls, key=lambda call: call.alone_s) for calls in zip(*passes, strict=True)]


def _occupancy(server: Running, requests: Sequence[bytes], clients: int, seconds: float) -> Occupancy:
    inside_s, began_s = _inside_s(server), time.monotonic()
    cost_s = _cost([server], requests, clients, seconds).cost_s
    took_s = time.monotonic() - began_s
    return Occupancy(clients, (_inside_s(server) - inside_s) / took_s, cost_s)


def _inside_s(server: Running) -> float:
    """Return the seconds that all calls so far were in the server."""
    page = metrics_page.read(server.metrics_address, _TIMEOUT_S)
    return page.total("request_duration_seconds_sum", method="TranslateText")


def _cost(servers: Sequence[Running], requests: Sequence[bytes], clients: int, seconds: float) -> Scale:
    """Measure calls that are all answered, or all refused."""
    before_s = sum(processor_s(server.process.pid) for server in servers)
    samples = _load(servers, requests, ClosedLoop(clients, 0.0, seconds, None))
    spent_s = sum(processor_s(server.process.pid) for server in servers) - before_s
    if samples.completed and samples.unanswered:
        raise ServerError(f"a server answered {samples.completed} calls, and {samples.unanswered} not")
    calls = samples.completed + samples.unanswered
    return Scale(len(servers), spent_s / calls, calls / seconds)


def _load(servers: Sequence[Running], requests: Sequence[bytes], loop: ClosedLoop) -> Samples:
    """Put a load on servers, one call to each in turn."""

    async def run() -> Samples:
        samples = Samples()
        async with AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(connected(server.address)) for server in servers]
            channels = [channel for of_server in zip(*opened, strict=True) for channel in of_server]
            asks = GrpcCalls(channels).asks(stream=False)
            await drive(Generator(asks, requests, _TIMEOUT_S, samples), loop)
        return samples

    return asyncio.run(run())
