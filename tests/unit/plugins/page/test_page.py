"""The files of the page, as they come over a real HTTP port, and what holds of them without a browser."""

import asyncio
import http.client
import re
from collections.abc import AsyncIterator, Mapping
from html.parser import HTMLParser
from typing import NamedTuple

import pytest

from docs.generators import openapi
from dragoman import errors
from dragoman.address import Address
from dragoman.documents.formats import installed_suffixes
from plugins.http import application
from plugins.http.connections import Connections
from plugins.http.forwarded import TrustedProxies
from plugins.page import page
from service.settings import Settings
from service.telemetry.metrics import Metrics

PATIENCE_S = 60.0
SCRIPTS = [name for name in page.FILES if name.endswith(".js")]
INDEX, GUIDE, STYLE, *SOURCES = (
    (page.FOLDER / name).read_text(encoding="utf-8") for name in ("index.html", "guide.html", "page.css", *SCRIPTS)
)
SCRIPT = "\n".join(SOURCES)
PATHS = dict.fromkeys(page.PAGES, "text/html; charset=utf-8") | {
    f"/page/{name}": kind for name, kind in page.FILES.items()
}


class Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Elements(HTMLParser):
    """All elements of a page: names and attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.all: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.all.append((tag, dict(attrs)))

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] or "" for _, attributes in self.all if attribute in attributes]


@pytest.fixture
async def port() -> AsyncIterator[Address]:
    app = application.make(page.routes(1234, 10_000, 'x"><script>'), ())
    connections = Connections(app, Settings(), None, TrustedProxies([]), Metrics())
    yield connections.open(Address("127.0.0.1", 0))
    await connections.close(PATIENCE_S)


async def get(port: Address, path: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
    def call() -> Answer:
        connection = http.client.HTTPConnection(port.host, port.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    return await asyncio.to_thread(call)


@pytest.mark.parametrize("path", PATHS)
async def test_a_file_comes_with_its_kind_and_what_a_browser_may_do_with_it(port: Address, path: str) -> None:
    answer = await get(port, path)
    assert (answer.status, answer.headers["content-type"]) == (200, PATHS[path])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy.pop("require-trusted-types-for") == "'script'"
    own = {name for name, places in policy.items() if places == "'self'"}
    assert own == {"script-src", "style-src", "img-src", "connect-src"}
    assert {name for name, places in policy.items() if places == "'none'"} == policy.keys() - own
    assert {"default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"} <= policy.keys()
    assert (await get(port, path, "HEAD")).body == b""
    assert (await get(port, path, "POST")).status == 405


@pytest.mark.parametrize("path", PATHS)
async def test_what_a_browser_has_already_is_not_sent_again(port: Address, path: str) -> None:
    first = await get(port, path)
    assert first.headers["cache-control"] == "no-cache"
    for known in (first.headers["etag"], f'"other", W/{first.headers["etag"]}'):
        again = await get(port, path, headers={"if-none-match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert (await get(port, path, headers={"if-none-match": '"other"'})).body == first.body
    assert len({(await get(port, each)).headers["etag"] for each in PATHS}) == len(PATHS)


async def test_the_page_says_the_limits_and_the_formats_of_the_server(port: Address) -> None:
    elements = Elements((await get(port, "/")).body.decode())
    assert elements.values("data-max-file-bytes") == ["5904"]
    assert elements.values("accept") == [", ".join(installed_suffixes())]
    assert elements.values("data-max-text-bytes") == ["1234"]
    assert elements.values("data-pivot-language") == ['x"><script>']


def test_the_pages_load_only_files_that_are_there_and_nothing_of_others() -> None:
    elements = Elements(INDEX + GUIDE)
    used = {*elements.values("src"), *elements.values("href")} - {".", "v1/openapi.json"}
    imported = {f"page/{name}" for name in re.findall(r'from "\./([^"]+)"', SCRIPT)}
    assert {f"/{path}" for path in used | imported} == PATHS.keys() - {"/"}
    assert {file.name for file in page.FOLDER.iterdir()} == {*page.PAGES.values(), *page.FILES}
    assert not re.search(r"https?://|@import|url\(", INDEX + GUIDE + SCRIPT + STYLE)


@pytest.mark.parametrize("text", [INDEX, GUIDE])
def test_no_script_nor_style_stands_in_a_page(text: str) -> None:
    elements = Elements(text)
    assert not [
        name for _, attributes in elements.all for name in attributes if name.startswith("on") or name == "style"
    ]
    assert [tag for tag, _ in elements.all].count("style") == 0
    assert re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL) == [""]


def test_the_script_makes_no_elements_of_text() -> None:
    forbidden = (
        "innerHTML outerHTML insertAdjacentHTML setHTML parseFromString document.write eval( Function( localStorage"
    )
    assert [word for word in forbidden.split() if word in SCRIPT] == []


def test_the_script_knows_only_elements_of_the_page_and_methods_of_the_server() -> None:
    ids = set(Elements(INDEX).values("id"))
    used = set(re.findall(r'\$\("([\w-]+)"\)', SCRIPT))
    listed = " ".join(re.findall(r"= \[(.*)\]\.map\(\$\)", SCRIPT))
    assert {"text", "copy"} <= used | set(re.findall(r'"(\w+)"', listed)) <= ids
    called = {path.partition("?")[0] for path in re.findall(r'(?:callFor\w+|fetch)\(["`]([^"`]+)', SCRIPT)}
    assert called == {"health", "v1/detect", "v1/models", "v1/translate", "v1/translate:stream"}
    assert {f"/{path}" for path in called} <= openapi.document()["paths"].keys()


def test_the_page_has_words_for_the_reasons_of_errors() -> None:
    table = re.search(r"const WORDS = \{(.*?)\n\};", SCRIPT, re.DOTALL)
    assert table is not None
    worded = set(re.findall(r"^  (\w+):", table[1], re.MULTILINE))
    reasons = {kind.reason for kind in vars(errors).values() if hasattr(kind, "reason")}
    assert {"RATE_LIMITED", "INVALID_REQUEST", "LOADING"} <= worded <= reasons


async def test_the_guide_names_methods_of_the_server(port: Address) -> None:
    guide = (await get(port, "/docs")).body.decode()
    for path in re.findall(r"</var>(v1/[\w:]+)", guide):
        assert f"/{path}" in openapi.document()["paths"]
    assert ", ".join(installed_suffixes()) in guide


def test_the_style_is_of_elements_of_the_page() -> None:
    known = set(Elements(INDEX).values("id"))
    assert set(re.findall(r"#([a-z][a-z-]*)(?=[^;{}]*\{)", STYLE)) <= known


def test_everything_to_use_has_a_name_and_names_refer_to_something() -> None:
    elements = Elements(INDEX)
    ids, labelled = elements.values("id"), set(elements.values("for"))
    assert len(ids) == len(set(ids))
    unnamed = [
        attributes["id"]
        for tag, attributes in elements.all
        if tag in {"input", "select", "textarea", "output"}
        and "aria-label" not in attributes
        and attributes["id"] not in labelled
    ]
    assert unnamed == []
    for attribute in ("for", "aria-describedby", "aria-controls"):
        assert {name for value in elements.values(attribute) for name in value.split()} <= set(ids)
    assert elements.all[0][1]["lang"] == "en"
    assert ("output", "polite") in [(tag, attributes.get("aria-live")) for tag, attributes in elements.all]
    assert elements.values("dir") == ["auto"] * 3  # marks, text, translation
    untouched = [attributes["id"] for _, attributes in elements.all if attributes.get("translate") == "no"]
    assert untouched == ["marks", "translation", "alternatives"]  # by a browser that translates pages
    assert not [value for value in elements.values("tabindex") if int(value) > 0]
