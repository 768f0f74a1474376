"""What is written in one moment goes out together, in order and before the end."""

import asyncio

import pytest

from plugins.http.joined_writes import JoinedWrites


class Transport:
    """Keeps what is done with it."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def abort(self) -> None:
        self.done.append("aborted")

    def is_closing(self) -> bool:
        return not {"closed", "aborted"}.isdisjoint(filter(lambda each: isinstance(each, str), self.done))


@pytest.fixture
async def transport() -> Transport:
    return Transport()


async def test_writes_of_one_moment_are_one(transport: Transport) -> None:
    joined = JoinedWrites(transport)
    joined.write(b"head")
    joined.write(b"body")
    assert transport.done == []
    await asyncio.sleep(0)
    joined.write(b"next")
    await asyncio.sleep(0)
    assert transport.done == [b"headbody", b"next"]


async def test_all_is_written_before_the_end(transport: Transport) -> None:
    joined = JoinedWrites(transport)
    joined.write(b"head")
    joined.write(b"body")
    joined.close()
    await asyncio.sleep(0)
    assert transport.done == [b"headbody", "closed"]


async def test_nothing_is_written_to_a_connection_that_was_aborted(transport: Transport) -> None:
    joined = JoinedWrites(transport)
    joined.write(b"head")
    joined.abort()
    await asyncio.sleep(0)
    assert transport.done == ["aborted"]


async def test_much_is_written_at_once_so_that_the_transport_can_say_that_it_is_full(transport: Transport) -> None:
    joined = JoinedWrites(transport)
    joined.write(b"head")
    joined.write(bytes(70_000))
    assert transport.done == [b"head" + bytes(70_000)]
    await asyncio.sleep(0)
    assert len(transport.done) == 1
