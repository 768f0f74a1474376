"""A model by its name, as `DRAGOMAN_MODELS=firefox:en-de docker compose up` has it, from a mirror beside it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stack import ROOT, Stack, until

from dragoman import Client, DragomanError
from tests.web import Web, firefox_list

_STUDENT = ROOT / "tests/data/firefox"  # of the form that Firefox ships; Marian trained it on few sentences
_SENTENCE, _TRANSLATION = "I don't know.", "Ich weiß nicht."


@contextmanager
def mirrored() -> Iterator[Path]:
    """Give a folder with the list of Firefox's models and the files of one, as a server of files gives them out."""
    web = Web("http://mirror:8000")
    firefox_list(web, {"en-de": {file.name: file.read_bytes() for file in sorted(_STUDENT.iterdir())}})
    with TemporaryDirectory() as folder:
        for path, content in web.files.items():
            file = Path(folder + path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        Path(folder).chmod(0o755)  # the server of files is another user
        yield Path(folder)


def translates(stack: Stack) -> None:
    """The model was imported into the volume, and translates."""
    [replica] = stack.replicas()
    [kept] = json.loads(stack.docker("exec", replica, "dragoman", "models", "--cached", "--json"))
    assert (kept["name"], kept["licence"]) == ("firefox:en-de", "MPL-2.0"), kept
    assert _translation(stack) == _TRANSLATION


def restarts_alone(stack: Stack) -> None:
    """What is in the volume is served without a look elsewhere."""
    stack.compose("stop", "mirror")
    stack.compose("restart", "dragoman")
    until(lambda: _translation(stack) == _TRANSLATION, "a translation after the restart")


def _translation(stack: Stack) -> str:
    try:
        with Client(stack.address, timeout_s=5) as client:
            return client.translate(_SENTENCE, model="firefox-en-de").text
    except DragomanError as error:
        return str(error)
