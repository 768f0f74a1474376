"""A real mailbox, and what takes the segments of calls into it."""

import pytest

from service.queue.intake import Intake
from service.queue.mailbox import Mailbox
from tests.unit.service.calls.played_calls import bound
from tests.unit.service.played import intake_of


@pytest.fixture
async def mailbox() -> Mailbox:
    return bound(Mailbox(20_000))


@pytest.fixture(params=[False, True], ids=["each decoded", "shared and kept"])
def intake(mailbox: Mailbox, request: pytest.FixtureRequest) -> Intake:
    return intake_of(mailbox, shares=request.param)
