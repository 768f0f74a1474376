"""Takes the pictures of the page anew, of a real server in a real Chromium: `python -m docs.screenshots`."""

from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from playwright.sync_api import Browser

from tests import chromium
from tests.server_process import BUNDLE, ServerProcess

DOCS: Final = Path(__file__).parent
_TEXT: Final = "Can you tell me the way to the library? It is closed on Sundays."
_WORD: Final = "Bibliothek"


class Picture(NamedTuple):
    """One picture.

    Attributes:
        path: of its file.
        width: of the window, in CSS pixels.
        height: likewise.
        scheme: of colors.
        scale: how many pixels a CSS pixel has.
        is_phone: whether it is touched.
    """

    path: Path
    width: int
    height: int
    scheme: Literal["light", "dark"]
    scale: float
    is_phone: bool = False


PICTURES: Final = (
    Picture(DOCS / "page.png", 1120, 680, "light", 1.5),
    Picture(DOCS / "page-phone.png", 390, 900, "dark", 1.5, is_phone=True),
)


def take(picture: Picture, browser: Browser, address: str) -> None:
    """Translate a text, point at a word of the translation, and take the picture."""
    page = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        device_scale_factor=picture.scale,
        has_touch=picture.is_phone,
        is_mobile=picture.is_phone,
    )
    page.goto(f"http://{address}/#auto/de/{quote(_TEXT)}")
    page.locator("#more:enabled").click()
    page.locator("#alternatives li").first.wait_for()
    page.locator("#translation").hover()
    page.locator("#translation span", has_text=_WORD).first.hover()
    page.locator("#marks mark").first.wait_for()
    page.screenshot(path=picture.path)
    page.close()


def main() -> None:
    """Take them all."""
    server = ServerProcess((f"--models={BUNDLE.parents[1]}", "--http-address=127.0.0.1:0"))
    try:
        server.wait_until_serving()
        with chromium.running() as browser:
            for picture in PICTURES:
                take(picture, browser, server.http_address)
    finally:
        server.close()


if __name__ == "__main__":
    main()
