"""Real `dragoman serve` processes on free ports, with the model of the repository, and tabs of a real browser."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from dragoman import Client
from tests import chromium
from tests.e2e.bundles import copy_bundle, copy_pair
from tests.e2e.page_tabs import Tab
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


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium here: Debian has it as chromium")
    expect.set_options(timeout=PATIENCE_S * 1000)
    with chromium.running() as browser:
        yield browser


@pytest.fixture(scope="module")
def page_server(browser: Browser, _bundle: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a pivot language, for all tests of the page that leave it as it was."""
    models = tmp_path_factory.mktemp("models")
    copy_bundle(BUNDLE, models / "en-de")
    for source in ("de", "fr"):
        copy_pair(models, source, "en")
    arguments = ("--http-address=127.0.0.1:0", f"--models={models}", "--threads=1", "--pivot-language=en")
    with serving(*arguments) as process:
        yield process


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs; at the end, nothing has gone wrong in them."""
    tabs: list[Tab] = []

    def make(server: ServerProcess, **options: object) -> Tab:
        tabs.append(Tab(browser.new_context(**({"locale": "en-US"} | options)), server))
        return tabs[-1]

    yield make
    for tab in tabs:
        assert tab.unexpected_errors() == []
        assert tab.page.evaluate("window.broken") == []
        tab.page.context.close()


@pytest.fixture
def tab(page_server: ServerProcess, visit: Callable[..., Tab]) -> Tab:
    return visit(page_server)
