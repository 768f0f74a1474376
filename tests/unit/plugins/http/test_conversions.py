import threading

import pytest

from plugins.http.conversions import converted


@pytest.mark.parametrize(("size", "is_here"), [(65_536, True), (65_537, False)])
async def test_only_what_is_large_is_converted_on_another_thread(size: int, is_here: bool) -> None:
    thread = await converted(size, threading.current_thread)
    assert (thread is threading.current_thread()) == is_here
