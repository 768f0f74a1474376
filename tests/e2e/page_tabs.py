"""One page of a server in a real browser."""

import time
from collections.abc import Callable
from typing import Final

from playwright.sync_api import BrowserContext, Page

from tests.server_process import PATIENCE_S, ServerProcess

ENGLISH: Final = "Good morning. Where is the library?"
GERMAN: Final = "Guten Morgen. Wo ist die Bibliothek?"
_EVERY_BREAK: Final = """
    window.broken = [];
    document.addEventListener("securitypolicyviolation", (event) => window.broken.push(event.violatedDirective));
"""


class Tab:
    """One page of the server, and what went wrong in it."""

    def __init__(self, context: BrowserContext, server: ServerProcess) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.add_init_script(_EVERY_BREAK)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.source, self.target, self.text, self.translation, self.error, self.again, self.swap, self.more = (
            self.page.locator(f"#{name}")
            for name in ("source", "target", "text", "translation", "error", "again", "swap", "more")
        )

    def open(self, fragment: str = "") -> "Tab":
        self.page.goto(f"http://{self.server.http_address}/{fragment}")
        return self

    def wait_until(self, metric: str, is_so: Callable[[float], bool], **labels: str) -> None:
        """Wait until the value of a metric of the server is so."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not is_so(value := self.server.metric(metric, **labels)):
            assert time.monotonic() < give_up_s, f"{metric} is still {value}"
            self.page.wait_for_timeout(50)

    def unexpected_errors(self) -> list[str]:
        """All but the browser's own lines about answers that are errors."""
        return [error for error in self.errors if not error.startswith("Failed to load resource")]
