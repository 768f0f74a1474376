import pytest

from bench.load.samples import Ending, Outcome
from dragoman import errors


@pytest.mark.parametrize(
    ("code", "reason", "outcome"),
    [
        ("OK", "", Outcome.ANSWERED),
        ("RESOURCE_EXHAUSTED", "QUEUE_FULL", Outcome.REJECTED),
        ("RESOURCE_EXHAUSTED", "OVERLOADED", Outcome.REJECTED),
        ("RESOURCE_EXHAUSTED", "A_REASON_OF_TOMORROW", Outcome.REJECTED),
        # gRPC itself: the message is larger than it may be, and no second try helps.
        ("RESOURCE_EXHAUSTED", errors.UnrecognizedError.reason, Outcome.FAILED),
        ("DEADLINE_EXCEEDED", "DEADLINE_UNREACHABLE", Outcome.REJECTED),
        ("DEADLINE_EXCEEDED", "DEADLINE_EXCEEDED", Outcome.FAILED),
        ("CANCELLED", "CANCELLED", Outcome.CANCELLED),
        ("UNAVAILABLE", "DRAINING", Outcome.FAILED),
        ("INTERNAL", "INTERNAL", Outcome.FAILED),
    ],
)
def test_what_became_of_a_request(code: str, reason: str, outcome: Outcome) -> None:
    assert Ending(code, reason).outcome is outcome
