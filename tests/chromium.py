"""A real Chromium without a window, for the tests of the page and for its pictures."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, sync_playwright

PROGRAM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# root has no sandbox; and nothing is called but the server.
_FLAGS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running() -> Iterator[Browser]:
    """Run the browser, with a profile of its own, for the time of the block.

    While it runs, no event loop can run in this thread.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()
