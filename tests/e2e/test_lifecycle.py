import signal
import socket
import threading

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dragoman import Client, DrainingError, InternalError, RequestCancelledError, ServerUnavailableError, Translation
from dragoman.errors import from_rpc_error
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.texts import LONG
from tests.waiting import until

LONGER = " ".join(f"Tom bought {number} books, and then he read them all." for number in range(1000, 9000))
MEDIUM = " ".join(f"Tom bought {number} books." for number in range(100, 1100))


# The decoder breaks once the self-check is over, in the threads of the engine.
BREAKING = """
import sys
from service.engine.batch import DecodeBatch
from service.engine.runner import Runner
step = DecodeBatch.step
def broken(self, slots):
    raise RuntimeError("broken")
def break_when_it_waits_for_callers(self, *, wait):
    if wait:
        Runner.run = broken
    return step(self, wait=wait)
DecodeBatch.step = break_when_it_waits_for_callers
from dragoman.cli import main
sys.exit(main())
"""


_ENDS = InternalError | ServerUnavailableError | RequestCancelledError


class Background(threading.Thread):
    """One call in a thread, its outcome kept."""

    def __init__(self, address: str, text: str) -> None:
        super().__init__()
        self.address, self.text = address, text
        self.outcome: object = None
        self.start()

    def run(self) -> None:
        with Client(self.address, timeout_s=120) as client:
            try:
                self.outcome = client.translate(self.text, model="en-de")
            except Exception as error:
                self.outcome = error


class BackgroundStream(Background):
    """The same for a stream, which does not try again."""

    def run(self) -> None:
        with grpc.insecure_channel(self.address) as channel:
            request = pb.TranslateTextRequest(contents=[self.text], model="en-de")
            try:
                self.outcome = list(TranslationStub(channel).StreamTranslateText(request, timeout=120))
            except grpc.RpcError as error:
                self.outcome = from_rpc_error(error)


def wait_until_decoding(server) -> None:
    until(lambda: server.metric("slots_active"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_with_0(serve, number) -> None:
    server = serve()
    server.signal(number)
    assert server.exit_code() == 0


def test_a_signal_while_the_models_load_ends_with_0(launch) -> None:
    server = launch()
    server.wait_for("listening on")
    server.signal(signal.SIGTERM)
    assert server.exit_code() == 0


def test_sigterm_stops_admission_and_finishes_what_runs(serve) -> None:
    server = serve()
    running = Background(server.address, MEDIUM)
    wait_until_decoding(server)
    with Client(server.address, retries=0) as client, grpc.insecure_channel(server.address) as channel:
        client.list_models()
        health = health_pb2_grpc.HealthStub(channel)
        health.Check(health_pb2.HealthCheckRequest())
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        with pytest.raises(ServerUnavailableError):
            client.translate("Good morning.", model="en-de")
    running.join()
    assert isinstance(running.outcome, Translation), running.outcome
    assert running.outcome.segments == 1000
    assert server.exit_code() == 0


def test_a_call_that_takes_too_long_to_drain_is_answered(serve) -> None:
    server = serve("--drain-timeout-s=0.1")
    with grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
        running = Background(server.address, LONG)
        wait_until_decoding(server)
        server.signal(signal.SIGTERM)
    running.join()
    # The client tries again after DRAINING, and may then find nobody at all.
    assert isinstance(running.outcome, ServerUnavailableError), running.outcome
    assert server.exit_code() == 0


def test_new_calls_are_taken_until_balancers_have_noticed(serve) -> None:
    server = serve("--shutdown-delay-s=600")
    with Client(server.address) as client, grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        server.signal(signal.SIGTERM)
        server.wait_for("shutting down")
        status = health.Check(health_pb2.HealthCheckRequest()).status
        assert status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert client.translate("Good morning.", model="en-de").segments == 1
    server.signal(signal.SIGTERM)  # or the test would take ten minutes
    assert server.exit_code() == 0


@pytest.mark.parametrize("numbers", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT)])
def test_a_second_signal_waits_for_nothing(serve, numbers) -> None:
    server = serve("--drain-timeout-s=600")
    running = BackgroundStream(server.address, LONGER)
    wait_until_decoding(server)
    server.signal(numbers[0])
    server.wait_for("draining")
    assert running.outcome is None
    server.signal(numbers[1])
    running.join()
    assert isinstance(running.outcome, DrainingError), running.outcome
    assert "told again" in str(running.outcome)
    assert server.exit_code() == 0


def test_draining_is_said_precisely(serve) -> None:
    server = serve("--drain-timeout-s=600")
    running = Background(server.address, LONGER)
    wait_until_decoding(server)
    with grpc.insecure_channel(server.address) as channel:  # this one does not try again
        list_models = TranslationStub(channel).ListModels
        list_models(pb.ListModelsRequest())
        server.signal(signal.SIGTERM)
        server.wait_for("draining")
        health = health_pb2_grpc.HealthStub(channel)
        status = health.Check(health_pb2.HealthCheckRequest(service="dragoman.v1.Translation")).status
        assert status == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.RpcError) as caught:
            list_models(pb.ListModelsRequest())
        assert isinstance(from_rpc_error(caught.value), DrainingError)
    server.signal(signal.SIGTERM)  # or the test would take as long as the text
    running.join()
    assert server.exit_code() == 0


def test_a_taken_port_ends_with_2_and_one_line(launch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag in ("--address", "--metrics-address", "--http-address"):
            server = launch(f"{flag}={address}")
            assert server.exit_code() == 2
            assert server.log[-1] == f"dragoman serve: cannot listen on {address} ({flag}): Address already in use\n"


def test_two_servers_cannot_share_a_port(launch, serve) -> None:
    first = serve()
    assert launch(f"--address={first.address}").exit_code() == 2


def test_no_bundle_ends_with_2_and_one_line(launch, tmp_path) -> None:
    server = launch(f"--models={tmp_path}")
    assert server.exit_code() == 2
    assert server.log[-1].startswith(f"dragoman serve: {tmp_path}: there is no bundle")


def test_an_engine_that_dies_answers_its_callers_and_ends_the_server_with_1(serve) -> None:
    server = serve(program=("-c", BREAKING))
    # More segments than slots: some of those that wait for an answer are in slots, some in the queue.
    texts = ["Good morning.", MEDIUM, LONG]
    calls = [kind(server.address, text) for text in texts for kind in (Background, BackgroundStream)]
    for call in calls:
        call.join()
    # Those that came after the first find the server draining, or gone.
    assert any(isinstance(call.outcome, InternalError) for call in calls), [call.outcome for call in calls]
    assert all(isinstance(call.outcome, _ENDS) for call in calls)
    assert server.exit_code() == 1
    assert any("an engine ended" in line for line in server.log)


def test_an_engine_that_dies_while_new_calls_are_still_taken_ends_the_server_with_1(serve) -> None:
    server = serve("--shutdown-delay-s=600", program=("-c", BREAKING))
    server.signal(signal.SIGTERM)
    server.wait_for("shutting down")
    call = BackgroundStream(server.address, "Good morning.")
    call.join()
    assert isinstance(call.outcome, InternalError), call.outcome
    assert server.exit_code() == 1


def test_whoever_watches_the_health_neither_keeps_the_server_nor_shows_up_as_an_error(serve) -> None:
    server = serve()
    with grpc.insecure_channel(server.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=120)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        server.signal(signal.SIGTERM)
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert list(watch) == []
    assert server.exit_code() == 0
    assert not [line for line in server.log if "rror" in line]
