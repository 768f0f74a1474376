"""What goes wrong in an engine, and who notices: faults are planted in the runs of a real server's graphs."""

import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Client, DeadlineExceededError, DragomanError, InternalError, Translation
from tests.e2e.texts import LONG
from tests.waiting import until, until_free

PATIENCE_S = 120
SERVICE = "dragoman.v1.Translation"
SENTENCES = [f"Tom bought {number} books." for number in range(100, 160)]
POISON = "Tom " + "and Tom " * 55 + "went home"  # one segment of more than 100 tokens

MAIN = """
import sys
from dragoman.cli import main
sys.exit(main())
"""

# The encoder fails on every segment of more than 100 tokens.
FAILING_ON_LONG = (
    """
from service.runtime.host import EncoderSession
encode = EncoderSession.encode
def fail_on_long(self, sources):
    if max(map(len, sources)) > 100:
        raise RuntimeError("poisonous")
    return encode(self, sources)
EncoderSession.encode = fail_on_long
"""
    + MAIN
)

# The decoder fails wherever a segment of more than 100 source tokens is in a slot.
FAILING_IN_A_SLOT = (
    """
from service.runtime.host import DecoderSession
new_step = DecoderSession.new_step
def failing_step(self, *arguments):
    slots, step = new_step(self, *arguments)
    run = step.run
    def fail_on_long(rows, start=0):
        ids = run(rows, start)
        if slots.rows.memory_lengths[start : start + rows].max() > 100:
            raise RuntimeError("poisonous")
        return ids
    step.run = fail_on_long
    return slots, step
DecoderSession.new_step = failing_step
"""
    + MAIN
)

# Every token of every translation is the same.
GOING_ROUND = (
    """
from service.runtime.slots import DecoderStep
run = DecoderStep.run
def go_round(self, *rows):
    ids = run(self, *rows)
    ids[:] = 1000
    return ids
DecoderStep.run = go_round
"""
    + MAIN
)

# As with products whose scale is that of the whole batch.
MINDING_THE_COMPANY = (
    """
from service.runtime.host import EncoderSession
encode = EncoderSession.encode
def mind(self, sources):
    return [memory * len(sources) for memory in encode(self, sources)]
EncoderSession.encode = mind
"""
    + MAIN
)

# A step lasts as long as a file is there.
STALLING = (
    """
import os, time
from service.runtime.slots import DecoderStep
run = DecoderStep.run
def stall(self, *rows):
    while os.path.exists({path!r}):
        time.sleep(0.01)
    return run(self, *rows)
DecoderStep.run = stall
"""
    + MAIN
)


class Background(threading.Thread):
    """A call in a thread, its outcome kept."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__()
        self.work = work
        self.outcome: object = None
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self.work()
        except DragomanError as error:
            self.outcome = error

    def wait(self) -> object:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.outcome


@pytest.mark.parametrize("program", [FAILING_ON_LONG, FAILING_IN_A_SLOT], ids=["encoder", "decoder"])
def test_a_poisonous_text_fails_alone(serve, client, program: str) -> None:
    expected = [translation.text for translation in client.translate(SENTENCES, model="en-de")]
    # Neither kept nor shared: the second call has to be decoded as well.
    server = serve("--result-cache-mb=0", "--encoder-cache-mb=0", program=("-c", program))
    with Client(server.address, timeout_s=PATIENCE_S) as own:

        def translate() -> list[str]:
            return [translation.text for translation in own.translate(SENTENCES, model="en-de")]

        calls = [Background(translate) for _ in range(3)]
        poisonous = [Background(lambda: own.translate(POISON, model="en-de")) for _ in range(3)]
        for call in poisonous:
            error = call.wait()
            assert isinstance(error, InternalError), error
            assert error.message == "the engine fails on this text"
        for call in calls:
            assert call.wait() == expected
        assert translate() == expected
    assert server.metric("failed_runs_total", graph="encoder") + server.metric("failed_runs_total", graph="decoder") > 0
    assert server.metric("segments_total", reason="INTERNAL") >= 1
    assert server.metric("slots_active") == 0
    assert not any("poisonous" in line for line in server.log)


def test_who_goes_round_in_circles_is_stopped_and_says_so(serve) -> None:
    server = serve(program=("-c", GOING_ROUND))
    text = "Good morning. Where is the station? I have never been to Berlin, and I do not know anybody there."
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        pieces = list(client.stream(text, model="en-de"))
        translation = client.translate(text, model="en-de")
    assert translation.finish_reason == "REPETITION"
    assert (translation.segments, translation.target_tokens) == (3, 3 * 20)
    assert pieces[-1].result == translation
    assert "".join(piece.text for piece in pieces) == translation.text
    until(lambda: server.metric("segments_total", reason="REPETITION") >= 3)  # counted after the answer, by the engine


def test_who_goes_round_in_circles_may_be_left_to_it(serve) -> None:
    server = serve("--no-stop-repetition", "--max-target-offset=7", program=("-c", GOING_ROUND))
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        translation = client.translate("Good morning.", model="en-de")
    assert translation.finish_reason == "LENGTH"
    assert translation.target_tokens == 2 * (translation.source_tokens + 1) + 7


def test_a_model_that_minds_the_company_is_not_served(launch) -> None:
    server = launch(program=("-c", MINDING_THE_COMPANY))
    assert server.exit_code() == 2
    assert server.log[-1].startswith("dragoman serve: model en-de: on thread 0 a sentence is decoded differently")
    assert not any('"serving"' in line for line in server.log)


def test_the_self_check_is_not_counted(serve) -> None:
    server = serve()
    for name in ("source_tokens_total", "target_tokens_total", "decode_step_duration_seconds_count"):
        assert server.metric(name) == 0


def test_a_stalled_step_takes_the_server_out_of_service_until_it_goes_on(serve, tmp_path: Path) -> None:
    stalled = tmp_path / "stalled"
    # Longer than a sound step takes on a busy machine.
    server = serve("--step-timeout-s=3", program=("-c", STALLING.format(path=str(stalled))))
    with Client(server.address, timeout_s=PATIENCE_S) as client, grpc.insecure_channel(server.address) as channel:
        request = health_pb2.HealthCheckRequest(service=SERVICE)
        watch = health_pb2_grpc.HealthStub(channel).Watch(request, timeout=PATIENCE_S)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        stalled.touch()
        call = Background(lambda: client.translate("Good morning.", model="en-de"))
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert server.metric("step_age_seconds") > 3
        stalled.unlink()
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
        assert isinstance(call.wait(), Translation)
    assert server.metric("stalled_steps_total") == 1
    assert server.metric("step_age_seconds") == 0


def test_a_server_whose_step_stalls_for_ever_answers_and_stops(serve, tmp_path: Path) -> None:
    stalled = tmp_path / "stalled"
    program = ("-c", STALLING.format(path=str(stalled)))
    server = serve("--step-timeout-s=0.2", "--drain-timeout-s=0.2", program=program)
    with Client(server.address, timeout_s=PATIENCE_S, retries=0) as client:
        client.list_models()  # connected: a call that finds nobody says something else
        stalled.touch()
        call = Background(lambda: client.translate("Good morning.", model="en-de"))
        server.wait_for("a step has stalled")
        server.process.terminate()
        assert isinstance(call.wait(), DragomanError)
    assert server.exit_code() == 0
    assert any("a thread does not end" in line for line in server.log)


def test_a_passed_deadline_empties_slots_and_queue(client, server) -> None:
    def withdrawn() -> float:
        return sum(server.metric("segments_total", reason=reason) for reason in ("DEADLINE", "CANCELLED"))

    before, saved = withdrawn(), server.metric("cancelled_tokens_saved_total")
    timeout_s = 1.0
    while server.metric("cancelled_tokens_saved_total") == saved:
        assert timeout_s < PATIENCE_S
        with pytest.raises(DeadlineExceededError):
            client.translate(LONG, model="en-de", timeout_s=timeout_s)
        timeout_s *= 2  # on a busy machine the engine may not have had any of it yet
        until_free(server)
    assert withdrawn() > before
    assert server.metric("queue_source_tokens") == 0
    assert client.translate("Good morning.", model="en-de")
