import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from plugins.library import download
from plugins.library.firefox import FirefoxModels, over_pivot
from tests import web
from tests.web import Web, firefox_list

# As Firefox names them.
NAMES = ("model.ende.intgemm.alphas.bin", "vocab.ende.spm", "lex.50.50.ende.s2t.bin")
FILES = {name: name.encode() * 3_000 for name in NAMES}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    with web.serving() as running:
        yield running


@pytest.fixture
def models(server: Web) -> FirefoxModels:
    pairs = ("en-de", "de-en", "en-fr", "nb-en", "be-en")
    return FirefoxModels.read(firefox_list(server, dict.fromkeys(pairs, FILES)))


def test_the_files_have_the_names_that_they_have_in_firefox(models: FirefoxModels, tmp_path: Path) -> None:
    model = models.model("en-de")
    assert model.revision == hashlib.sha256(FILES[NAMES[0]]).hexdigest()
    models.fetch(model, tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == FILES


def test_what_is_there_is_not_fetched_again(models: FirefoxModels, server: Web, tmp_path: Path) -> None:
    models.fetch(models.model("en-de"), tmp_path)
    server.requests.clear()
    models.fetch(models.model("en-de"), tmp_path)
    assert server.requests == []


def test_wrong_content_is_refused_and_fetched_anew(models: FirefoxModels, server: Web, tmp_path: Path) -> None:
    path = f"/data/en-de/{NAMES[0]}.gz"
    whole = server.files[path]
    server.files[path] = server.files[f"/data/en-de/{NAMES[1]}.gz"]
    with pytest.raises(DataError, match=rf"{NAMES[0]}: sha256 is \w+, the list says {models.model('en-de').revision}"):
        models.fetch(models.model("en-de"), tmp_path)
    assert list(tmp_path.iterdir()) == []
    server.files[path] = whole
    models.fetch(models.model("en-de"), tmp_path)
    assert (tmp_path / NAMES[0]).read_bytes() == FILES[NAMES[0]]


def test_files_stay_in_their_folder(server: Web, tmp_path: Path) -> None:
    models = FirefoxModels.read(firefox_list(server, {"en-de": {"../../x.bin": b"x"}}))
    server.files["/data/en-de/../../x.bin.gz"] = web.gzip.compress(b"x")
    folder = tmp_path / "a" / "b"
    models.fetch(models.model("en-de"), folder)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [folder / "x.bin"]


def entry(size: int, status: str) -> dict[str, Any]:
    weights = {"path": f"{size}{status}.gz", "uncompressedSize": size, "uncompressedHash": f"{size}"}
    return {"architecture": "x", "releaseStatus": status, "files": {"model": weights}}


def test_released_models_come_first_and_then_large_ones(server: Web) -> None:
    entries = [entry(3, "Nightly"), entry(1, "Release Android"), entry(2, "Release"), entry(4, "")]
    content = {"baseUrl": server.address, "models": {"en-de": entries, "en-fr": entries[:1]}, "generated": "now"}
    models = FirefoxModels.model_validate_json(json.dumps(content))
    assert models.model("en-de").revision == "2"
    assert models.model("en-fr").revision == "3"


def test_ways(models: FirefoxModels) -> None:
    assert models.pairs == ["be-en", "de-en", "en-de", "en-fr", "nb-en"]
    assert models.ways("en-de") == ["en-de"]
    assert models.ways("de-fr") == ["de-en", "en-fr"]
    with pytest.raises(DataError, match=r"firefox:de-nb: there is no such model, and none over en; there are: de-en$"):
        models.ways("de-nb")
    with pytest.raises(DataError, match="there are: be-en, de-en, en-de, en-fr, nb-en"):
        models.ways("xx-yy")
    with pytest.raises(DataError, match=r"firefox:en-ed: .* none over en; did you mean firefox:en-de\?$"):
        models.ways("en-ed")
    with pytest.raises(DataError, match=r"firefox:de-fr: there is no such model; there are: de-en, en-fr$"):
        models.model("de-fr")
    assert over_pivot("en-de") == over_pivot("de-en") == []


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"<html>", "Invalid JSON"), (b'{"baseUrl": "x"}', "models: Field required")],
)
def test_what_is_no_list(server: Web, content: bytes, said: str) -> None:
    server.files["/models.json"] = content
    with pytest.raises(DataError, match=f"/models.json: is no list of Firefox's models: {said}"):
        FirefoxModels.read(f"{server.address}/models.json")


def test_an_entry_without_a_hash(server: Web) -> None:
    firefox_list(server, {"en-de": FILES})
    content = json.loads(server.files["/models.json"])
    del content["models"]["en-de"][0]["files"]["model"]["uncompressedHash"]
    models = FirefoxModels.model_validate_json(json.dumps(content))
    with pytest.raises(DataError, match="firefox:en-de: the list gives no hash of its weights"):
        models.model("en-de")
