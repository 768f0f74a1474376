"""A server reads a bundle of every format that is promised, as it was first written."""

import json
from collections.abc import Iterator

import pytest

from dragoman import Client
from dragoman.bundle import FORMAT, MANIFEST, OLDEST_FORMAT
from tests.bundle_formats import FOLDER, PAIRS, folder_of
from tests.server_process import PATIENCE_S, serving

PROMISED = range(OLDEST_FORMAT, FORMAT + 1)


@pytest.fixture(scope="module")
def client_of_all() -> Iterator[Client]:
    with serving(f"--models={FOLDER}") as server, Client(server.address, timeout_s=PATIENCE_S) as client:
        yield client


def test_there_is_a_bundle_of_each_format() -> None:
    versions = [json.loads(file.read_text())["format_version"] for file in FOLDER.glob(f"*/{MANIFEST}")]
    assert sorted(versions) == list(PROMISED), "is the format new? python -m tests.bundle_formats"


@pytest.mark.parametrize("beam_size", [1, 2])
@pytest.mark.parametrize("version", PROMISED)
def test_a_bundle_of_each_format_translates_as_it_did(client_of_all: Client, version: int, beam_size: int) -> None:
    folder = folder_of(version)
    known = dict(line.split("\t") for line in (folder / PAIRS).read_text(encoding="utf-8").splitlines())
    answers = client_of_all.translate(list(known), model=folder.name, beam_size=beam_size)
    assert [answer.text for answer in answers] == list(known.values())
