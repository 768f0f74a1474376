"""The accept loop of grpc.aio, made so that no path of a call ends it, and so that its end is known.

grpcio 1.84.0 to 1.85.1 decode the path of every method that nobody registered inside that loop: a path that is no UTF-8
ends it for good, and nobody is told. Here such calls are answered apart, and their paths are not read at all.
"""

import asyncio
import traceback
from collections.abc import Coroutine, Sequence
from typing import Any, Final, NoReturn

import grpc.aio
from grpc._cython import cygrpc
from grpc.aio import _server as aio_server

# What is used of grpcio beside its public names. Without one of them, as before 1.84, its own loop runs. Where that one
# ends, Core writes to memory that was freed, and nothing can be promised: the tests of paths are there to see it first.
_CALL: Final = "_schedule_rpc_coro"  # goes on until the answer is sent
_NEEDED: Final = ("_MethodResolver", "_handle_rpc", _CALL)
_NEEDED_OF_LOOP: Final = ("_make_request_call_future", "_request_call", "_request_registered_call", "_server_main_loop")
_METHOD: Final = "unknown"  # in place of a path, which may be anything


def make_server(options: Sequence[tuple[str, int]]) -> Any:
    """Make a server all of whose methods are registered, as stubs do it; needs a running event loop.

    Returns:
        grpc.aio.Server.
    """
    if _is_known():
        return _Server(options)
    return grpc.aio.server(options=options)


def why_ended(server: Any) -> BaseException | str | None:
    """Say why a server accepts no calls any more though nobody stopped it; None while it does."""
    loop = server._server
    if isinstance(loop, _AcceptLoop) and loop.end is not None:
        return loop.end
    return None if loop.is_running() else "it shut down"


def calls() -> set[asyncio.Task[Any]]:
    """Find the tasks of calls whose answers are not sent yet, of all servers of this event loop."""
    return {task for task in asyncio.all_tasks() if getattr(task.get_coro(), "__name__", "") == _CALL}


def _is_known() -> bool:
    return all(hasattr(cygrpc, name) for name in _NEEDED) and all(
        hasattr(cygrpc.AioServer, name) for name in _NEEDED_OF_LOOP
    )


class _Server(aio_server.Server):  # type: ignore[misc]  # grpc has no types
    """A grpc.aio.Server around another accept loop."""

    def __init__(self, options: Sequence[tuple[str, int]]) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = _AcceptLoop(self._loop, None, (), (), tuple(options), None)


class _AcceptLoop(cygrpc.AioServer):  # type: ignore[misc]
    """Hands calls of registered methods on, and answers all others itself.

    Attributes:
        end: why the loop ended; None while it runs.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.end: BaseException | str | None = None

    async def _server_main_loop(self, started: asyncio.Future[bool]) -> None:
        try:
            await super()._server_main_loop(started)
            self.end = "it ended"
        except Exception as error:  # raised on, it would keep `stop` from its work
            traceback.clear_frames(error.__traceback__)  # they hold the call that came last, which must end
            self.end = error
            if not started.done():
                started.set_exception(error)
        except BaseException as error:
            self.end = error
            raise

    def _make_request_call_future(self, method: bytes | None) -> asyncio.Future[Any]:
        if method is None:
            return asyncio.ensure_future(self._answer_unregistered())
        return _requested(self._request_registered_call(method))

    async def _answer_unregistered(self) -> NoReturn:
        """Answer UNIMPLEMENTED, for ever."""
        loop, nothing = asyncio.get_running_loop(), cygrpc._MethodResolver([], {})
        answers = set()  # a loop holds its tasks weakly
        while True:
            call = await _requested(self._request_call())
            answer = cygrpc._handle_rpc(_METHOD, nothing, (), call, loop, False)
            task = loop.create_task(cygrpc._schedule_rpc_coro(answer, call, loop, _METHOD))
            answers.add(task)
            task.add_done_callback(answers.discard)


def _requested(request: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
    """Begin a request for a call.

    Returns:
        The call, once there is one. If that is cancelled, the memory that Core writes to stays until Core has done so,
        which grpcio does not see to; the call ends then.
    """
    steps = request.__await__()
    written: asyncio.Future[None] = next(steps)
    call = asyncio.get_running_loop().create_future()

    def hand_over(_: asyncio.Future[None]) -> None:
        try:
            next(steps)
        except StopIteration as end:
            if not call.done():
                call.set_result(end.value)
        except Exception as error:
            if not call.done():
                call.set_exception(error)

    written.add_done_callback(hand_over)
    return call
