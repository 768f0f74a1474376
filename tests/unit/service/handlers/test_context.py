import time

import pytest

from service.handlers.context import CallContext
from service.security.access import Caller


@pytest.mark.parametrize(("left_s", "late"), [(None, False), (600.0, False), (0.0, True), (-5.0, True)])
def test_a_call_is_late_at_its_deadline_and_from_then_on(left_s: float | None, late: bool) -> None:
    deadline_s = None if left_s is None else time.monotonic() + left_s
    assert CallContext(Caller("alice"), deadline_s).late is late


async def test_without_a_transport_nobody_is_told_that_a_call_was_let_in() -> None:
    before_s = time.monotonic()
    context = CallContext(Caller("alice"))
    await context.accept()
    assert before_s <= context.began_s <= time.monotonic()
