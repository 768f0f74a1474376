"""A real gRPC server on a loopback port, whose translation of a text is that text."""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import grpc
import pytest
from grpc_health.v1.health import HealthServicer
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from grpc_status import rpc_status

from dragoman.errors import DragomanError, DrainingError, TextFailedError, to_status, to_text_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationServicer, add_TranslationServicer_to_server


class EchoServicer(TranslationServicer):
    """Echoes texts, after failing once with each of `errors`; with `blocks` it waits for the call's end.

    A text "poison" has an error in place of its echo.
    """

    def __init__(self) -> None:
        self.errors: list[DragomanError] = []
        self.blocks = False
        self.breaks_after: int | None = None  # texts of a stream
        self.cancels = 0  # so many calls end with CANCELLED, as those do that arrive as a server stops
        self.answers_twice = False  # the last text of each message of a stream
        self.drains_at_end = False
        self.models = ["en-de"]
        self.requests: list[pb.TranslateTextRequest | pb.ScoreTextRequest | pb.DetectLanguageRequest] = []
        self.configs: list[pb.BatchTranslateTextConfig] = []
        self.messages: list[list[str]] = []
        self.metadata: list[dict[str, str | bytes]] = []
        self.remaining_s: list[float] = []  # until the deadline of each call, as it arrived
        self.call_ended = Event()

    def TranslateText(self, request: pb.TranslateTextRequest, context: Any) -> pb.TranslateTextResponse:
        self._begin(request, context)
        return pb.TranslateTextResponse(translations=[self.translated(text) for text in request.contents])

    def StreamTranslateText(
        self, request: pb.TranslateTextRequest, context: Any
    ) -> Iterator[pb.StreamTranslateTextResponse]:
        self._begin(request, context)
        for position in range(max(map(len, request.contents), default=0)):
            for index, text in enumerate(request.contents):
                if position < len(text):
                    yield pb.StreamTranslateTextResponse(content_index=index, text_delta=text[position])
        for index, text in enumerate(request.contents):
            yield pb.StreamTranslateTextResponse(content_index=index, result=self.translated(text))

    def BatchTranslateText(
        self, messages: Iterator[pb.BatchTranslateTextRequest], context: Any
    ) -> Iterator[pb.BatchTranslateTextResponse]:
        config = next(messages).config
        self.configs.append(config)
        self._begin(None, context)
        context.send_initial_metadata(())
        count = 0
        for message in messages:
            self.messages.append(list(message.contents))
            indices = range(count, count + len(message.contents))
            answers = [
                pb.BatchTranslation(content_index=index, translation=self.translated(text))
                for index, text in zip(indices, message.contents, strict=True)
            ]
            count += len(answers)
            if self.breaks_after is not None and count > self.breaks_after:
                answers = answers[: self.breaks_after - count]
                yield pb.BatchTranslateTextResponse(translations=answers)
                context.abort_with_status(rpc_status.to_status(to_status(DrainingError("draining", retry_delay_s=0.0))))
            yield pb.BatchTranslateTextResponse(translations=answers if config.in_order else reversed(answers))
            if self.answers_twice:
                yield pb.BatchTranslateTextResponse(translations=answers[-1:])
        if self.drains_at_end:
            context.abort_with_status(rpc_status.to_status(to_status(DrainingError("draining", retry_delay_s=0.0))))

    def ScoreText(self, request: pb.ScoreTextRequest, context: Any) -> pb.ScoreTextResponse:
        """Scores a pair by how long its texts are."""
        self._begin(request, context)
        return pb.ScoreTextResponse(scores=[self.scored(pair) for pair in request.pairs])

    def DetectLanguage(self, request: pb.DetectLanguageRequest, context: Any) -> pb.DetectLanguageResponse:
        """Takes each text for the code of its language; "" has none."""
        self._begin(request, context)
        languages = [
            [pb.DetectedLanguage(language_code=text, confidence=0.75)] if text else [] for text in request.contents
        ]
        return pb.DetectLanguageResponse(detections=[pb.DetectedLanguages(languages=each) for each in languages])

    def ListModels(self, request: pb.ListModelsRequest, context: Any) -> pb.ListModelsResponse:
        self._begin(None, context)
        place = int(request.page_token or 0)  # one model a page
        model = pb.Model(
            name=self.models[place],
            source_language_code="en",
            target_language_code="de",
            precision="int8",
            max_source_tokens=128,
            max_target_tokens=256,
            vocabulary_size=8000,
            checkpoint_sha256="ab" * 32,
        )
        more = place + 1 < len(self.models)
        return pb.ListModelsResponse(models=[model], next_page_token=str(place + 1) if more else "")

    def _begin(
        self, request: pb.TranslateTextRequest | pb.ScoreTextRequest | pb.DetectLanguageRequest | None, context: Any
    ) -> None:
        if request is not None:
            self.requests.append(request)
        self.metadata.append(dict(context.invocation_metadata()))
        self.remaining_s.append(math.inf if (remaining := context.time_remaining()) is None else remaining)
        ended = Event()
        if not (context.add_callback(ended.set) and context.add_callback(self.call_ended.set)):
            ended.set()
        if self.blocks:
            ended.wait()
        if self.cancels:
            self.cancels -= 1
            context.abort(grpc.StatusCode.CANCELLED, "the server stops")
        if self.errors:
            context.abort_with_status(rpc_status.to_status(to_status(self.errors.pop(0), "echo")))

    @staticmethod
    def scored(pair: pb.TextPair) -> pb.TextScore:
        if pair.target_text == "poison":
            return pb.TextScore(model="en-de", text_error=to_text_error(TextFailedError("poisonous")))
        return pb.TextScore(
            model="en-de",
            log_probability=-float(len(pair.target_text)),
            mean_log_probability=-0.5,
            tokens=[pb.TokenScore(piece=character, log_probability=-1.0) for character in pair.target_text],
            source_tokens=len(pair.source_text),
            target_tokens=len(pair.target_text),
        )

    @staticmethod
    def translated(text: str) -> pb.TranslatedText:
        if text == "poison":
            return pb.TranslatedText(model="en-de", text_error=to_text_error(TextFailedError("poisonous")))
        return pb.TranslatedText(
            translated_text=text,
            model="en-de",
            source_tokens=len(text),
            target_tokens=len(text) + 1,
            finish_reason=pb.FINISH_REASON_EOS,
            segments=1,
        )


class EchoServer:
    """A started server: its servicers and its address."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None, port: int = 0) -> None:
        self.servicer = EchoServicer()
        self.health = HealthServicer()
        self._pool = ThreadPoolExecutor(4)
        self._server = grpc.server(
            self._pool, options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)]
        )
        add_TranslationServicer_to_server(self.servicer, self._server)
        add_HealthServicer_to_server(self.health, self._server)
        if credentials is None:
            port = self._server.add_insecure_port(f"127.0.0.1:{port}")
        else:
            port = self._server.add_secure_port(f"127.0.0.1:{port}", credentials)
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(grace=None).wait()
        self._pool.shutdown()


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has a client call a server again soon; how long it really waits is tested with `dragoman.patience`."""
    monkeypatch.setattr("dragoman.patience._FIRST_PAUSE_S", 0.01)


@pytest.fixture
def start_echo() -> Iterator[Callable[..., EchoServer]]:
    """Starts as many servers as a test asks for."""
    servers: list[EchoServer] = []

    def start(*arguments: Any, **options: Any) -> EchoServer:
        servers.append(EchoServer(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def echo(start_echo: Callable[..., EchoServer]) -> EchoServer:
    return start_echo()
