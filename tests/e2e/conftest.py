"""Real `dragoman serve` processes on free ports, with the model of the repository."""

from collections.abc import Callable, Iterator

import pytest

from dragoman import Client
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving


@pytest.fixture(scope="session")
def _bundle() -> None:
    if not (BUNDLE / "bundle.json").is_file():
        pytest.skip("models/en-de/bundle is not there")


@pytest.fixture
def launch(_bundle: None) -> Iterator[Callable[..., ServerProcess]]:
    """Starts servers with more flags, and does not wait for them."""
    processes: list[ServerProcess] = []

    def start(*arguments: str, **options: tuple[str, ...]) -> ServerProcess:
        processes.append(ServerProcess(arguments, **options))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


@pytest.fixture
def serve(launch: Callable[..., ServerProcess]) -> Callable[..., ServerProcess]:
    """Starts servers with more flags, and waits until they take calls."""

    def start(*arguments: str, **options: tuple[str, ...]) -> ServerProcess:
        process = launch(*arguments, **options)
        process.wait_until_serving()
        return process

    return start


@pytest.fixture(scope="session")
def server(_bundle: None) -> Iterator[ServerProcess]:
    """One server for all tests that leave it as it was."""
    with serving() as process:
        yield process


@pytest.fixture(scope="session")
def uncached(_bundle: None) -> Iterator[ServerProcess]:
    """One server that keeps and shares nothing, for all tests that leave it as it was."""
    with serving("--encoder-cache-mb=0", "--result-cache-mb=0", "--no-coalesce") as process:
        yield process


@pytest.fixture(scope="session")
def default_models(_bundle: None) -> Iterator[ServerProcess]:
    """A server as `make serve` starts it: with all models of the repository, and HTTP."""
    with serving(f"--models={BUNDLE.parents[1]}", "--http-address=127.0.0.1:0") as process:
        yield process


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        yield client
