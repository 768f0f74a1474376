"""The clients of a Dragoman server, blocking and asyncio; both use the same request builder.

A call that fails raises an error of `dragoman.errors`. When no server takes the call (no connection, draining, loading)
and no part of the answer has arrived, the client makes the call again after growing pauses with jitter: `retries`
times; until the deadline if the server has answered before, because it comes back after a restart. Calls are spread
over all addresses that the server's name resolves to. A busy server is called again only with `wait_when_busy`: after
the time that its answer names, and after longer pauses each time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, Self, TypeVar, Unpack, overload

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
    score_of,
    stored_glossary_of,
    translation_delta_of,
    translation_of,
)
from dragoman.channel import DEFAULT_RETRIES, address_of, api_key_of, channel_options, in_words, metadata_of
from dragoman.errors import (
    DeadlineExceededError,
    DragomanError,
    InternalError,
    RequestCancelledError,
    ServerUnavailableError,
    from_rpc_error,
)
from dragoman.feed import AsyncFeed, Feed
from dragoman.many import pause_s as pause_of_many_s
from dragoman.options import (
    Options,
    Priority,
    check_flag,
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
_CLOSED = "the client was closed"

_Answer = TypeVar("_Answer")


class _Base:
    """The common part of both clients: the settings of every call, and the stubs."""

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
        if not isinstance(retries, int):
            raise TypeError(f"retries: must be int, is {type(retries).__name__}")
        check_flag("wait_when_busy", wait_when_busy)
        if retries < 0:
            raise ValueError(f"retries must be 0 or more, is {retries!r}")
        if timeout_s is not None:
            checked_timeout_s(timeout_s)
        self._metadata = (*Access(api_key_of(api_key)).metadata, *metadata_of(metadata))
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
        """Note that the server answers and takes calls."""
        self._has_answered = True
        patience.answered()

    def _pause_s(self, error: DragomanError, patience: Patience) -> float:
        """Compute the pause before the next attempt; raises the error if there is no next attempt."""
        if self._is_closed:
            raise error
        return patience.pause_s(error)

    def _pause_of_many_s(self, error: DragomanError, patience: Patience, *, done: bool) -> float | None:
        """Compute the pause as `many.pause_s` does; a closed client makes no other call."""
        if self._is_closed and not done:
            raise error
        return pause_of_many_s(error, patience, done=done)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the Dragoman error in place of the one that gRPC raises."""
        try:
            yield
        except grpc.RpcError as rpc_error:
            error = in_words(from_rpc_error(rpc_error), self._address)
            if self._is_closed and isinstance(error, RequestCancelledError):
                error = RequestCancelledError(_CLOSED)
            raise error from rpc_error
        except asyncio.CancelledError as cancelled:  # grpc.aio raises it for a call that ends because of `close`, too
            task = asyncio.current_task()
            if not self._is_closed or (task and task.cancelling()):
                raise
            raise RequestCancelledError(_CLOSED) from cancelled

    def _settings(self, patience: Patience) -> dict[str, Any]:
        """Give the keyword arguments of a call.

        Raises:
            ValueError: the client is closed.
            DeadlineExceededError: no time is left. With a timeout of 0, gRPC might report a server that is away.
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
    """Give the function that makes a channel from an address and `options`.

    Raises:
        TypeError: the credentials are none of gRPC.
    """
    if not isinstance(credentials, grpc.ChannelCredentials | None):
        raise TypeError(f"credentials: must be grpc.ChannelCredentials, is {type(credentials).__name__}")
    return insecure if credentials is None else partial(secure, credentials=credentials)


def _in_loop(connect: Callable[..., Any], address: str, **options: Any) -> Any:
    """Make a channel for the event loop that runs.

    Raises:
        RuntimeError: none runs: gRPC would say so only in the first call, and in other words.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError("AsyncClient: make it in the coroutine that uses it; no event loop runs here") from None
    return connect(address, **options)


def _one_or_all(texts: str | Sequence[str], answers: list[_Answer]) -> _Answer | list[_Answer]:
    """Return the answer for a single text, or the list for several texts.

    Raises:
        InternalError: there is not one answer for each text.
    """
    count = 1 if isinstance(texts, str) else len(texts)
    if len(answers) != count:
        raise InternalError(f"the server answered {len(answers)} of {count} texts")
    return answers[0] if isinstance(texts, str) else answers


def _is_ready(response: HealthCheckResponse) -> bool:
    serving: bool = response.status == HealthCheckResponse.SERVING
    return serving


class Client(_Base):
    """A blocking client; one is enough for a process, and safe to use from many threads.

        with Client("localhost:50051") as client:
            print(client.translate("Good morning.", model="en-de").text)

    Args:
        address: `host:port`, or any gRPC target such as `dns:///host:port` or `unix:/path`. None: the environment
            variable DRAGOMAN_SERVER, or else 127.0.0.1:50051.
        timeout_s: the deadline of a call, with its retries and pauses; a call can override it.
        retries: how often a call is made again when no server takes it. For a server that has answered before, or that
            loads its models, the client waits until the deadline. With 0 no call is made again.
        wait_when_busy: True: a call that a busy server refuses (RATE_LIMITED, CONCURRENCY_LIMITED, QUEUE_FULL,
            OVERLOADED) is made again while its deadline allows, never sooner than the server asks.
        api_key: is sent with every call, as `authorization: Bearer`; use it only with servers that have TLS. None: the
            environment variable DRAGOMAN_API_KEY; "": no key.
        metadata: is sent with every call; keys in lower case.
        credentials: for a TLS channel, from `grpc.ssl_channel_credentials`; None: plain text.

    Raises:
        ValueError: `retries` or `timeout_s` is negative, the address is neither `host:port` nor another target of gRPC,
            or no header can hold the key or the metadata.
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

    # A str is also a Sequence[str]: type checkers take the first signature that fits.
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
            texts: one text, or several; together at most as much as the server answers in one message, by default
                1,398,101 bytes (`translate_many` has no such limit).
            all_or_nothing: True: a text that cannot be translated raises its error. False: its `Translation` holds the
                `error`, and the other texts are translated.
            timeout_s: the deadline of this call, with its retries; None: that of the client.
            **options: languages, model and more, see `dragoman.Options`.

        Returns:
            The translation of a single text; for several texts a list, in the same order.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: before sending: a text is no valid Unicode, a number is negative, or the priority is unknown.
            TypeError: before sending: a text or an option is of a wrong type, or there is no such option.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        response = self._answer(self._stub.TranslateText, request, self._patience(timeout_s))
        return _one_or_all(texts, [*map(translation_of, response.translations)])

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

        The call starts when the first piece is requested; closing the iterator early cancels the call. After the first
        piece, a call that fails is not made again.

        Args:
            texts: as in `translate`.
            all_or_nothing: as in `translate`; with False, the error is in the last piece of the text.
            timeout_s: as in `translate`, for the whole stream.
            **options: as in `translate`.

        Yields:
            The pieces: in order within a text; the pieces of different texts are interleaved.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
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
        """Translate any number of texts over one call as they arrive, without holding all of them in memory.

            for index, translation in client.translate_many(sentences, model="en-de"):
                ...

        The iterable is read on a separate thread, so it may block. It is read as fast as answers are taken: at most
        about two thousand texts are sent and unanswered.

        Each text is answered exactly once. A text that cannot be translated has an `error` and raises nothing; only a
        text above the server's limit of a message, by default 8 MiB, raises its error. When the server drains or is
        lost, the client sends the unanswered texts again over a new call, to another server if the address has
        several. Without a deadline, the client gives up after a server has been away for a minute.

        If an error is raised, every yielded text is done: after n answers in order, `itertools.islice(texts, n, None)`
        gives the remaining texts of a list, or of another iterable that begins anew each time. A generator, a `map` or
        a file does not: it was read further than it was answered, so make it again first.

        Args:
            texts: any number of texts; a single string counts as one text.
            in_order: True: the answers come in the order of the texts. False: each comes as soon as it is ready.
            timeout_s: the deadline of the whole call; None: no deadline.
            **options: as in `translate`; the default priority is "bulk".

        Yields:
            The index of each text in the iterable, and its translation.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            TypeError: a text or an option is of a wrong type, or there is no such option.
            Exception: the error of the iterable, after the earlier texts are answered.
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
                    pause_s = self._pause_of_many_s(error, patience, done=feed.done)
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
        """Compute how probable given translations are, each the translation of a text of about one sentence.

            score = client.score("Good morning.", "Guten Morgen.", model="en-de")
            print(score.mean_log_probability)

        Args:
            texts: one text, or several; each within the model's limit of source tokens.
            translations: the translation of the text, or a list with one translation for each text.
            source_language: as in `dragoman.Options`.
            target_language: as in `dragoman.Options`.
            model: as in `dragoman.Options`.
            request_id: as in `dragoman.Options`.
            priority: as in `dragoman.Options`.
            all_or_nothing: True: a pair that cannot be scored raises its error. False: its `Score` holds the `error`,
                and the other pairs are scored.
            timeout_s: the deadline of this call, with its retries; None: that of the client.

        Returns:
            The score of a single translation; for several a list, in the same order.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: before sending: the numbers of translations and texts differ, a text is no valid Unicode, or the
                priority is unknown.
            TypeError: before sending: a text or an option is of a wrong type.
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
        return _one_or_all(texts, [*map(score_of, response.scores)])

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
        """Detect the possible languages of texts, without translating them.

            [best, *others] = client.detect("Wo ist der Bahnhof?")

        Args:
            texts: one text, or several, of any length; the server reads the first 1,000 characters of each.
            mime_type: "text/html" for HTML, "text/xml" for XML.
            request_id: a name for the call, see `dragoman.Options`.
            timeout_s: the deadline of this call, with its retries; None: that of the client.

        Returns:
            At most five languages of a single text, the most probable first; none if the text shows no language, such
                as a text of digits. For several texts a list of such lists, in the same order.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: before sending: a text is no valid Unicode.
            TypeError: before sending: a text or an argument is of a wrong type.
        """
        request = detect_request_of(texts, mime_type=mime_type, request_id=request_id)
        response = self._answer(self._stub.DetectLanguage, request, self._patience(timeout_s))
        detections = [*map(detected_of, response.detections)]
        return _one_or_all(texts, detections)

    def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """List the models of the server, by name.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
        """
        pages = self._pages(self._stub.ListModels, pb.ListModelsRequest(), timeout_s)
        return [model_of(model) for page in pages for model in page.models]

    def list_glossaries(self, *, timeout_s: float | None = None) -> list[StoredGlossary]:
        """List the glossaries that the server has stored, by name.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
        """
        pages = self._pages(self._stub.ListGlossaries, pb.ListGlossariesRequest(), timeout_s)
        return [stored_glossary_of(glossary) for page in pages for glossary in page.glossaries]

    def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Wait until a server answers that it is serving.

        Args:
            timeout_s: the longest time to wait; None: the client's deadline for a call.

        Raises:
            DeadlineExceededError: no server was ready within this time.
            DragomanError: the server could not report its state, see `dragoman.errors`.
        """
        patience = self._patience(timeout_s)
        while True:
            try:
                with self._errors():
                    call = self._health.Check(HealthCheckRequest(), wait_for_ready=True, **self._settings(patience))
                    if _is_ready(call):
                        self._note_answer(patience)
                        return
            except DeadlineExceededError as error:
                raise self._unready(timeout_s) from error
            except ServerUnavailableError:
                pass
            time.sleep(_READY_PAUSE_S)

    def _pages(self, method: Callable[..., Any], request: Any, timeout_s: float | None) -> Iterator[Any]:
        """Yield the pages of a list."""
        patience = self._patience(timeout_s)
        while True:
            page = self._answer(method, request, patience)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _answer(self, method: Callable[..., Any], request: Any, patience: Patience) -> Any:
        """Make a call with one answer, again where the client waits for a server."""
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
        """Close the connections; this cancels running calls."""
        self._is_closed = True
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Base):
    """The asyncio client; use it only on the event loop that created it.

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

    Raises:
        RuntimeError: no event loop runs.
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
        connect = _connected(grpc.aio.insecure_channel, grpc.aio.secure_channel, credentials)
        super().__init__(
            address,
            partial(_in_loop, connect),
            timeout_s=timeout_s,
            retries=retries,
            wait_when_busy=wait_when_busy,
            api_key=api_key,
            metadata=metadata,
        )

    # A str is also a Sequence[str]: type checkers take the first signature that fits.
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
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
        """
        request = request_of(texts, all_or_nothing=all_or_nothing, **options)
        response = await self._answer(self._stub.TranslateText, request, self._patience(timeout_s))
        return _one_or_all(texts, [*map(translation_of, response.translations)])

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

        To leave the loop early, wrap the iterator in `contextlib.aclosing`, which cancels the call at once.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
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
        """Translate any number of texts over one call as they arrive. See `Client.translate_many`.

        The texts come from an asynchronous iterable, or from a plain one that must not block. To leave the loop early,
        wrap the iterator in `contextlib.aclosing`.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: a text is no valid Unicode, or an option is out of range.
            TypeError: a text or an option is of a wrong type, or there is no such option.
            Exception: the error of the iterable, after the earlier texts are answered.
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
                    pause_s = self._pause_of_many_s(error, patience, done=feed.done)
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
        """Compute how probable given translations are. See `Client.score`.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: before sending: the numbers of translations and texts differ, a text is no valid Unicode, or the
                priority is unknown.
            TypeError: before sending: a text or an option is of a wrong type.
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
        return _one_or_all(texts, [*map(score_of, response.scores)])

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
        """Detect the possible languages of texts, without translating them. See `Client.detect`.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
            ValueError: as `Client.detect`.
            TypeError: as `Client.detect`.
        """
        request = detect_request_of(texts, mime_type=mime_type, request_id=request_id)
        response = await self._answer(self._stub.DetectLanguage, request, self._patience(timeout_s))
        detections = [*map(detected_of, response.detections)]
        return _one_or_all(texts, detections)

    async def list_models(self, *, timeout_s: float | None = None) -> list[Model]:
        """List the models of the server, by name.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
        """
        pages = self._pages(self._stub.ListModels, pb.ListModelsRequest(), timeout_s)
        return [model_of(model) async for page in pages for model in page.models]

    async def list_glossaries(self, *, timeout_s: float | None = None) -> list[StoredGlossary]:
        """List the glossaries that the server has stored, by name.

        Raises:
            DragomanError: a subclass that names the cause, see `dragoman.errors`.
        """
        pages = self._pages(self._stub.ListGlossaries, pb.ListGlossariesRequest(), timeout_s)
        return [stored_glossary_of(glossary) async for page in pages for glossary in page.glossaries]

    async def wait_until_ready(self, timeout_s: float | None = None) -> None:
        """Wait until a server answers that it is serving.

        Raises:
            DeadlineExceededError: no server was ready within this time.
            DragomanError: the server could not report its state, see `dragoman.errors`.
        """
        patience = self._patience(timeout_s)
        while True:
            try:
                with self._errors():
                    call = self._health.Check(HealthCheckRequest(), wait_for_ready=True, **self._settings(patience))
                    if _is_ready(await call):
                        self._note_answer(patience)
                        return
            except DeadlineExceededError as error:
                raise self._unready(timeout_s) from error
            except ServerUnavailableError:
                pass
            await asyncio.sleep(_READY_PAUSE_S)

    async def _pages(self, method: Callable[..., Any], request: Any, timeout_s: float | None) -> AsyncIterator[Any]:
        """Yield the pages of a list."""
        patience = self._patience(timeout_s)
        while True:
            page = await self._answer(method, request, patience)
            yield page
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def _answer(self, method: Callable[..., Any], request: Any, patience: Patience) -> Any:
        """Make a call with one answer, again where the client waits for a server."""
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
        """Close the connections; this cancels running calls."""
        self._is_closed = True
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
