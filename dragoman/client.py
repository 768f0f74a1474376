"""The clients of a Dragoman server, blocking and asyncio, over the same request builder.

A call that fails raises an error of `dragoman.errors`. Where no server is there for it (no connection, draining,
loading) and nothing of the answer has arrived, the call is made again with growing, jittered pauses: `retries` times,
and as long as the deadline allows for a server that has answered before, which comes back after a restart. Calls are
spread over all addresses that the server's name resolves to. A busy server is asked again only with `wait_when_busy`:
after the time that its answer names, and longer each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import TracebackType
from typing import Any, Self, Unpack, overload

import grpc
import grpc.aio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from dragoman.access import Access
from dragoman.answers import (
    BatchTranslation,
    DetectedLanguage,
    Model,
    Score,
    StoredGlossary,
    Translation,
    TranslationDelta,
    detected_of,
    model_of,
    next_page_of,
    score_of,
    stored_glossary_of,
    translation_delta_of,
    translation_of,
)
from dragoman.channel import DEFAULT_RETRIES, address_of, api_key_of, channel_options, in_words
from dragoman.errors import DeadlineExceededError, DragomanError, ServerUnavailableError, from_rpc_error
from dragoman.feed import AsyncFeed, Feed
from dragoman.many import pause_s as pause_of_many_s
from dragoman.options import (
    Options,
    Priority,
    config_of,
    detect_request_of,
    request_of,
    score_request_of,
    shows_options,
)
from dragoman.patience import Patience, checked_timeout_s
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub

DEFAULT_TIMEOUT_S = 60.0

_READY_PAUSE_S = 0.2


class _Base:
    """What both clients share: the settings of every call, and the stubs."""

    def __init__(
        self,
        address: str | None,
        connect: Callable[..., Any],
        *,
        timeout_s: float,
        retries: int,
        wait_when_busy: bool,
        api_key: str | None,
        metadata: Mapping[str, str] | None,
    ) -> None:
        if not isinstance(retries, int) or retries < 0:
            raise ValueError(f"retries must be 0 or more, is {retries!r}")
        if timeout_s is not None:
            checked_timeout_s(timeout_s)
        self._metadata = (*Access(api_key_of(api_key)).metadata, *(metadata or {}).items())
        self._address = address_of(address)
        self._channel = connect(self._address, options=channel_options())
        self._stub = TranslationStub(self._channel)
        self._health = HealthStub(self._channel)
        self._timeout_s = timeout_s
        self._retries = retries
        self._wait_when_busy = wait_when_busy
        self._has_answered = False
        self._is_closed = False

    def _patience(self, timeout_s: float | None) -> Patience:
        return self._patience_with_many(self._timeout_s if timeout_s is None else timeout_s)

    def _patience_with_many(self, timeout_s: float | None) -> Patience:
        return Patience(
            timeout_s,
            retries=self._retries,
            wait_when_busy=self._wait_when_busy,
            is_known=self._has_answered,
        )

    def _note_answer(self, patience: Patience) -> None:
        """Note that the server is there and takes calls."""
        self._has_answered = True
        patience.answered()

    def _pause_s(self, error: DragomanError, patience: Patience) -> float:
        """Say how long to wait before the call is made again; raises the error where it is not."""
        if self._is_closed:
            raise error
        return patience.pause_s(error)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the error that the server raised in place of gRPC's."""
        try:
            yield
        except grpc.RpcError as rpc_error:
            raise in_words(from_rpc_error(rpc_error), self._address) from rpc_error

    def _settings(self, patience: Patience) -> dict[str, Any]:
        """Give the keyword arguments of a call.

        Raises:
            ValueError: the client is closed.
            DeadlineExceededError: no time is left. gRPC would try to connect and might call that a server that is away.
        """
        if self._is_closed:
            raise ValueError("the client is closed")
        if (left_s := patience.left_s) == 0:
            raise DeadlineExceededError("the deadline passed before the server was called")
        return {"timeout": left_s, "metadata": self._metadata}

    def _unready(self, timeout_s: float | None) -> DeadlineExceededError:
        waited_s = self._timeout_s if timeout_s is None else timeout_s
        return DeadlineExceededError(f"no server at {self._address} was ready within {waited_s:g} s")


def _connected(
    insecure: Callable[..., Any], secure: Callable[..., Any], credentials: grpc.ChannelCredentials | None
) -> Callable[..., Any]:
    """Give what makes a channel of an address and `options`."""
    return insecure if credentials is None else partial(secure, credentials=credentials)


def _one_or_all(texts: str | Sequence[str], response: pb.TranslateTextResponse) -> Translation | list[Translation]:
    """Give one translation for one text, a list for several."""
    translations = [translation_of(message) for message in response.translations]
    return translations[0] if isinstance(texts, str) else translations


def _score_or_all(texts: str | Sequence[str], response: pb.ScoreTextResponse) -> Score | list[Score]:
    """Give one score for one text, a list for several."""
    scores = [score_of(message) for message in response.scores]
    return scores[0] if isinstance(texts, str) else scores


def _languages_or_all(
    texts: str | Sequence[str], response: pb.DetectLanguageResponse
) -> list[DetectedLanguage] | list[list[DetectedLanguage]]:
    """Give the languages of one text, a list of such lists for several."""
    detections = [detected_of(message) for message in response.detections]
    return detections[0] if isinstance(texts, str) else detections


def _is_ready(response: HealthCheckResponse) -> bool:
    serving: bool = response.status == HealthCheckResponse.SERVING
    return serving


class Client(_Base):
    """A blocking client; one is enough for a process, and safe to use from many threads.

        with Client("localhost:50051") as client:
            print(client.translate("Good morning.", model="en-de").text)

    Args:
        address: `host:port`, or any gRPC target such as `dns:///host:port` or `unix:/path`. Without one, that of the
            environment variable DRAGOMAN_SERVER, or else 127.0.0.1:50051.
        timeout_s: the deadline of a call, retries and pauses included, unless the call has its own.
        retries: how often a call is made again where no server is there for it. One that has answered before, or that
            loads its models, is waited for until the deadline; with 0 no call is made again.
        wait_when_busy: whether a call that a busy server refuses (RATE_LIMITED, CONCURRENCY_LIMITED, QUEUE_FULL,
            OVERLOADED) waits and is made again, as long as its deadline allows: never sooner than the server asks.
        api_key: sent with every call, as `authorization: Bearer`; give it only to servers with TLS. Without one, that
            of the environment variable DRAGOMAN_API_KEY; with "", none.
        metadata: sent with every call; keys in lower case.
        credentials: of a TLS channel, from `grpc.ssl_channel_credentials`; plain text without.

    Raises:
        ValueError: `retries` or `timeout_s` is negative, the address is neither `host:port` nor another target of gRPC,
            or no header can hold the key.
        TypeError: an argument is of a wrong type.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
        wait_when_busy: bool = False,
        api_key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        super().__init__(
            address,
            _connected(grpc.insecure_channel, grpc.secure_channel, credentials),
            timeout_s=timeout_s,
            retries=retries,
            wait_when_busy=wait_when_busy,
            api_key=api_key,
            metadata=metadata,
        )

    # A string is a sequence of strings, too: the first signature that fits counts.
    @overload
    def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Translation: ...

    @overload
    def translate(
        self,
        texts: Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> list[Translation]: ...

    @shows_options
    def translate(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Translation | list[Translation]:
        """Translate texts of any length.

        Args:
            texts: one text, or several; together at most what a server answers with one message, by default 1,398,101
                bytes (`translate_many` takes any number).
            all_or_nothing: whether a text that cannot be translated raises its error; else it has it in the `error`
                of its translation, and the others are translated.
            timeout_s: the deadline of this call, retries included; the client's without.
            **options: languages, model and more, see `dragoman.Options`.

        Returns:
            The translation of one text; of several a list, in the same order.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: a text is no valid Unicode, a number is negative, or the priority is none.
            TypeError: nothing was sent: a text or an option is of a wrong type, or there is no such option.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        response = self._answer(self._stub.TranslateText, request, self._patience(timeout_s))
        return _one_or_all(texts, response)

    @shows_options
    def stream(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Iterator[TranslationDelta]:
        """Translate like `translate`, and yield each translation piece by piece while it is decoded.

        The call starts when the first piece is asked for, and is cancelled when the iterator is closed early. Once
        there is a piece, the call is not made again where the server goes away.

        Args:
            texts: as in `translate`.
            all_or_nothing: as in `translate`; the error then comes in the last piece of the text.
            timeout_s: as in `translate`; it bounds the whole stream.
            **options: as in `translate`.

        Yields:
            The pieces: those of one text in order, those of different texts interleaved.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        patience = self._patience(timeout_s)
        begun = False
        while not begun:
            try:
                with self._errors():
                    call = self._stub.StreamTranslateText(request, **self._settings(patience))
                    try:
                        for message in call:
                            if not begun:
                                self._note_answer(patience)
                            begun = True
                            yield translation_delta_of(message)
                        begun = True
                    finally:
                        call.cancel()
            except DragomanError as error:
                if begun:
                    raise
                time.sleep(self._pause_s(error, patience))

    @shows_options
    def translate_many(
        self,
        texts: Iterable[str],
        *,
        in_order: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Iterator[BatchTranslation]:
        """Translate any number of texts over one call, while they come and without holding them all.

            for index, translation in client.translate_many(map(str.strip, open("sentences.txt")), model="en-de"):
                ...

        The iterable is read as answers are taken: at most some two thousand texts are sent and not answered. It is read
        on a thread of its own, so it may wait for its texts.

        Each text is answered exactly once. One that cannot be translated has an `error`, and raises nothing. Where
        the server drains or is lost, the texts that it left unanswered are sent again over a new call, to another
        server if the address has several; without a deadline, a server that stays away for a minute ends it. Whatever
        is raised, every text that was yielded is done: after n answers in order, what is left is
        `itertools.islice(texts, n, None)`.

        Args:
            texts: any number of them; a string is one.
            in_order: whether the answers come in the order of the texts; else each comes as soon as it is ready.
            timeout_s: the deadline of the whole; none without.
            **options: as in `translate`; the priority is "bulk" without.

        Yields:
            Each text's place in the iterable, and its translation.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            TypeError: a text or an option is of a wrong type, or there is no such option.
            Exception: what the iterable raised, once the texts before are answered.
        """
        first = pb.BatchTranslateTextRequest(config=config_of(in_order=in_order, **options))
        patience, feed = self._patience_with_many(timeout_s), Feed(texts)
        pause_s: float | None = 0.0
        try:
            while pause_s is not None:
                time.sleep(pause_s)
                messages = chain([first], feed.messages())
                call = self._stub.BatchTranslateText(messages, **self._settings(patience))
                try:
                    with self._errors():
                        for message in call:
                            self._note_answer(patience)
                            yield from feed.receive(message)
                    pause_s = None
                except DragomanError as error:
                    pause_s = pause_of_many_s(error, patience, done=feed.done)
                finally:
                    call.cancel()
            feed.check_end()
        finally:
            feed.close()

    @overload
    def score(  # type: ignore[overload-overlap]
        self,
        texts: str,
        translations: str,
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> Score: ...

    @overload
    def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> list[Score]: ...

    def score(
        self,
        texts: str | Sequence[str],
        translations: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> Score | list[Score]:
        """Say how probable translations are that are given, each of a text of one sentence or so.

            score = client.score("Good morning.", "Guten Morgen.", model="en-de")
            print(score.mean_log_probability)

        Args:
            texts: one text, or several; each no longer than the model reads at a time.
            translations: the translation of the text, or of each.
            source_language: as in `dragoman.Options`.
            target_language: as in `dragoman.Options`.
            model: as in `dragoman.Options`.
            request_id: as in `dragoman.Options`.
            priority: as in `dragoman.Options`.
            all_or_nothing: whether a pair that cannot be scored raises its error; else it has it in the `error` of its
                score, and the others are scored.
            timeout_s: the deadline of this call, retries included; the client's without.

        Returns:
            The score of one translation; of several a list, in the same order.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: there are not as many translations as texts, a text is no valid Unicode, or
                the priority is none.
            TypeError: nothing was sent: a text or an option is of a wrong type.
        """
        request = score_request_of(
            texts,
            translations,
            source_language=source_language,
            target_language=target_language,
            model=model,
            request_id=request_id,
            priority=priority,
            all_or_nothing=all_or_nothing,
        )
        response = self._answer(self._stub.ScoreText, request, self._patience(timeout_s))
        return _score_or_all(texts, response)

    @overload
    def detect(  # type: ignore[overload-overlap]
        self, texts: str, *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[DetectedLanguage]: ...

    @overload
    def detect(
        self, texts: Sequence[str], *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[list[DetectedLanguage]]: ...

    def detect(
        self, texts: str | Sequence[str], *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[DetectedLanguage] | list[list[DetectedLanguage]]:
        """Say in which languages texts may be; nothing is translated.

            [best, *others] = client.detect("Wo ist der Bahnhof?")

        Args:
            texts: one text, or several, of any length: the first 1,000 characters of each are looked at.
            mime_type: "text/html" where they are HTML, "text/xml" where they are XML.
            request_id: a name for the call, see `dragoman.Options`.
            timeout_s: the deadline of this call, retries included; the client's without.

        Returns:
            At most five languages of one text, the most probable first, and none where it says nothing, such as one of
            digits; of several texts a list of such lists, in the same order.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: a text is no valid Unicode.
            TypeError: nothing was sent: a text or an argument is of a wrong type.
        """
        request = detect_request_of(texts, mime_type=mime_type, request_id=request_id)
        response = self._answer(self._stub.DetectLanguage, request, self._patience(timeout_s))
        return _languages_or_all(texts, response)

    def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """List the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        models: list[Model] = []
        patience = self._patience(timeout_s)
        request: pb.ListModelsRequest | None = pb.ListModelsRequest()
        while request is not None:
            response = self._answer(self._stub.ListModels, request, patience)
            models += map(model_of, response.models)
            request = next_page_of(response)
        return models

    def list_glossaries(self, *, timeout_s: float | None = None) -> list[StoredGlossary]:
        """List the glossaries that the server has stored, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        glossaries: list[StoredGlossary] = []
        patience = self._patience(timeout_s)
        page = ""
        while True:
            request = pb.ListGlossariesRequest(page_token=page)
            response = self._answer(self._stub.ListGlossaries, request, patience)
            glossaries += map(stored_glossary_of, response.glossaries)
            page = response.next_page_token
            if not page:
                return glossaries

    def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Wait until a server is there and says that it serves.

        Args:
            timeout_s: how long to wait at most; as long as a call may take without.

        Raises:
            DeadlineExceededError: no server was ready by then.
            DragomanError: the server cannot say, see `dragoman.errors`.
        """
        patience = self._patience(timeout_s)
        while True:
            try:
                with self._errors():
                    call = self._health.Check(HealthCheckRequest(), wait_for_ready=True, **self._settings(patience))
                    if _is_ready(call):
                        return
            except DeadlineExceededError as error:
                raise self._unready(timeout_s) from error
            except ServerUnavailableError:
                pass
            time.sleep(_READY_PAUSE_S)

    def _answer(self, method: Callable[..., Any], request: Any, patience: Patience) -> Any:
        """Make a call with one answer, again where a server is to be waited for."""
        while True:
            try:
                with self._errors():
                    answer = method(request, **self._settings(patience))
                self._note_answer(patience)
                return answer
            except DragomanError as error:
                pause_s = self._pause_s(error, patience)
            time.sleep(pause_s)

    def close(self) -> None:
        """Close the connections; calls that run are cancelled."""
        self._is_closed = True
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(_Base):
    """The asyncio client; use it on the event loop on which it was made.

        async with AsyncClient("localhost:50051") as client:
            translation = await client.translate("Good morning.", model="en-de")

    Args:
        address: as in `Client`.
        timeout_s: as in `Client`.
        retries: as in `Client`.
        wait_when_busy: as in `Client`.
        api_key: as in `Client`.
        metadata: as in `Client`.
        credentials: as in `Client`.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: int = DEFAULT_RETRIES,
        wait_when_busy: bool = False,
        api_key: str | None = None,
        metadata: Mapping[str, str] | None = None,
        credentials: grpc.ChannelCredentials | None = None,
    ) -> None:
        super().__init__(
            address,
            _connected(grpc.aio.insecure_channel, grpc.aio.secure_channel, credentials),
            timeout_s=timeout_s,
            retries=retries,
            wait_when_busy=wait_when_busy,
            api_key=api_key,
            metadata=metadata,
        )

    # A string is a sequence of strings, too: the first signature that fits counts.
    @overload
    async def translate(  # type: ignore[overload-overlap]
        self,
        texts: str,
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Translation: ...

    @overload
    async def translate(
        self,
        texts: Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> list[Translation]: ...

    @shows_options
    async def translate(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> Translation | list[Translation]:
        """Translate texts of any length. See `Client.translate`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        response = await self._answer(self._stub.TranslateText, request, self._patience(timeout_s))
        return _one_or_all(texts, response)

    @shows_options
    async def stream(
        self,
        texts: str | Sequence[str],
        *,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncIterator[TranslationDelta]:
        """Translate, and yield each translation piece by piece while it is decoded. See `Client.stream`.

        To leave before the end, wrap the iterator in `contextlib.aclosing`: that cancels the call at once.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        patience = self._patience(timeout_s)
        begun = False
        while not begun:
            try:
                with self._errors():
                    call = self._stub.StreamTranslateText(request, **self._settings(patience))
                    try:
                        async for message in call:
                            if not begun:
                                self._note_answer(patience)
                            begun = True
                            yield translation_delta_of(message)
                        begun = True
                    finally:
                        call.cancel()
            except DragomanError as error:
                if begun:
                    raise
                await asyncio.sleep(self._pause_s(error, patience))

    @shows_options
    async def translate_many(
        self,
        texts: Iterable[str] | AsyncIterable[str],
        *,
        in_order: bool = True,
        timeout_s: float | None = None,
        **options: Unpack[Options],
    ) -> AsyncIterator[BatchTranslation]:
        """Translate any number of texts over one call, while they come. See `Client.translate_many`.

        The texts may come from a plain iterable, which must not block, or from an asynchronous one. To leave before the
        end, wrap the iterator in `contextlib.aclosing`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            TypeError: a text or an option is of a wrong type, or there is no such option.
            Exception: what the iterable raised, once the texts before are answered.
        """
        first = pb.BatchTranslateTextRequest(config=config_of(in_order=in_order, **options))
        patience, feed = self._patience_with_many(timeout_s), AsyncFeed(texts)
        pause_s: float | None = 0.0
        try:
            while pause_s is not None:
                await asyncio.sleep(pause_s)
                call = self._stub.BatchTranslateText(**self._settings(patience))
                sending = asyncio.create_task(feed.send(call, first))
                try:
                    with self._errors():
                        async for message in call:
                            self._note_answer(patience)
                            for answer in feed.receive(message):
                                yield answer
                    pause_s = None
                except DragomanError as error:
                    pause_s = pause_of_many_s(error, patience, done=feed.done)
                finally:
                    call.cancel()
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
            feed.check_end()
        finally:
            await feed.close()

    @overload
    async def score(  # type: ignore[overload-overlap]
        self,
        texts: str,
        translations: str,
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> Score: ...

    @overload
    async def score(
        self,
        texts: Sequence[str],
        translations: Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> list[Score]: ...

    async def score(
        self,
        texts: str | Sequence[str],
        translations: str | Sequence[str],
        *,
        source_language: str = "",
        target_language: str = "",
        model: str = "",
        request_id: str = "",
        priority: Priority | None = None,
        all_or_nothing: bool = True,
        timeout_s: float | None = None,
    ) -> Score | list[Score]:
        """Say how probable translations are that are given. See `Client.score`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: nothing was sent: there are not as many translations as texts, a text is no valid Unicode, or
                the priority is none.
            TypeError: nothing was sent: a text or an option is of a wrong type.
        """
        request = score_request_of(
            texts,
            translations,
            source_language=source_language,
            target_language=target_language,
            model=model,
            request_id=request_id,
            priority=priority,
            all_or_nothing=all_or_nothing,
        )
        response = await self._answer(self._stub.ScoreText, request, self._patience(timeout_s))
        return _score_or_all(texts, response)

    @overload
    async def detect(  # type: ignore[overload-overlap]
        self, texts: str, *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[DetectedLanguage]: ...

    @overload
    async def detect(
        self, texts: Sequence[str], *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[list[DetectedLanguage]]: ...

    async def detect(
        self, texts: str | Sequence[str], *, mime_type: str = "", request_id: str = "", timeout_s: float | None = None
    ) -> list[DetectedLanguage] | list[list[DetectedLanguage]]:
        """Say in which languages texts may be; nothing is translated. See `Client.detect`.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
            ValueError: as `Client.detect`.
            TypeError: as `Client.detect`.
        """
        request = detect_request_of(texts, mime_type=mime_type, request_id=request_id)
        response = await self._answer(self._stub.DetectLanguage, request, self._patience(timeout_s))
        return _languages_or_all(texts, response)

    async def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """List the models of the server, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        models: list[Model] = []
        patience = self._patience(timeout_s)
        request: pb.ListModelsRequest | None = pb.ListModelsRequest()
        while request is not None:
            response = await self._answer(self._stub.ListModels, request, patience)
            models += map(model_of, response.models)
            request = next_page_of(response)
        return models

    async def list_glossaries(self, *, timeout_s: float | None = None) -> list[StoredGlossary]:
        """List the glossaries that the server has stored, by name.

        Raises:
            DragomanError: the subclass that says why, see `dragoman.errors`.
        """
        glossaries: list[StoredGlossary] = []
        patience = self._patience(timeout_s)
        page = ""
        while True:
            request = pb.ListGlossariesRequest(page_token=page)
            response = await self._answer(self._stub.ListGlossaries, request, patience)
            glossaries += map(stored_glossary_of, response.glossaries)
            page = response.next_page_token
            if not page:
                return glossaries

    async def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Wait until a server is there and says that it serves.

        Raises:
            DeadlineExceededError: no server was ready by then.
            DragomanError: the server cannot say, see `dragoman.errors`.
        """
        patience = self._patience(timeout_s)
        while True:
            try:
                with self._errors():
                    call = self._health.Check(HealthCheckRequest(), wait_for_ready=True, **self._settings(patience))
                    if _is_ready(await call):
                        return
            except DeadlineExceededError as error:
                raise self._unready(timeout_s) from error
            except ServerUnavailableError:
                pass
            await asyncio.sleep(_READY_PAUSE_S)

    async def _answer(self, method: Callable[..., Any], request: Any, patience: Patience) -> Any:
        """Make a call with one answer, again where a server is to be waited for."""
        while True:
            try:
                with self._errors():
                    answer = await method(request, **self._settings(patience))
                self._note_answer(patience)
                return answer
            except DragomanError as error:
                pause_s = self._pause_s(error, patience)
            await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Close the connections; calls that run are cancelled."""
        self._is_closed = True
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
