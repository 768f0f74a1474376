"""Messages that are sent one by one, and a handler that says how its call ends."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from dragoman.errors import DragomanError, InternalError, RequestCancelledError
from service.handlers.delivery import deliver


class Handler:
    """Yields numbers; turns what goes wrong into the error of its call."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.made: list[int] = []
        self.left = False

    async def messages(self) -> AsyncGenerator[int, None]:
        try:
            for number in range(self.count):
                self.made.append(number)
                yield number
        except asyncio.CancelledError as error:
            raise RequestCancelledError("the client left") from error
        except OSError as error:
            raise InternalError("cannot be sent") from error
        finally:
            self.left = True


async def test_each_message_is_sent_before_the_next_is_made() -> None:
    handler, sent = Handler(3), []

    async def send(number: int) -> None:
        assert handler.made[-1] == number
        sent.append(number)

    await deliver(handler.messages(), send)
    assert (sent, handler.left) == ([0, 1, 2], True)


@pytest.mark.parametrize(
    ("fault", "expected"), [(OSError("gone"), InternalError), (asyncio.CancelledError(), RequestCancelledError)]
)
async def test_a_handler_is_told_what_went_wrong_and_says_how_its_call_ends(
    fault: BaseException, expected: type[DragomanError]
) -> None:
    handler = Handler(3)

    async def send(number: int) -> None:
        if number == 1:
            raise fault

    with pytest.raises(expected):
        await deliver(handler.messages(), send)
    assert (handler.made, handler.left) == ([0, 1], True)


async def test_a_handler_that_goes_on_all_the_same_is_a_fault_of_ours() -> None:
    async def deaf() -> AsyncGenerator[int, None]:
        for number in range(3):
            try:
                yield number
            except OSError:
                continue

    async def send(number: int) -> None:
        raise OSError

    with pytest.raises(AssertionError, match="goes on though its message was not sent"):
        await deliver(deaf(), send)
