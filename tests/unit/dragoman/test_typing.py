"""What a type checker finds in a user's file."""

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[3]
CLEAN = """
from dragoman import AsyncClient, Client, DetectedLanguage, Score, Translation

def one(client: Client) -> Translation:
    return client.translate("a", model="en-de", priority="bulk", timeout_s=1.0)

def best(client: Client) -> list[str]:
    translation = client.translate("a", beam_size=4, length_penalty=1, alternatives=2)
    return [alternative.text for alternative in translation.alternatives]

def scored(client: Client) -> float:
    scores: list[Score] = client.score(["a"], ["b"], model="en-de")
    return client.score("a", "b", model="en-de", priority="bulk").mean_log_probability + scores[0].log_probability

def languages(client: Client) -> list[str]:
    several: list[list[DetectedLanguage]] = client.detect(["a"])
    return [client.detect("a")[0].language, *(each.language for each in several[0])]

def several(client: Client) -> list[Translation]:
    return client.translate(["a", "b"], source_language="en", target_language="de")

async def awaited(client: AsyncClient) -> list[str]:
    await client.wait_until_ready(timeout_s=1.0)
    first: Translation = await client.translate("a")
    others: list[Translation] = await client.translate(("b",))
    return [first.text, *(other.text for other in others)]
"""
WRONG = """
from dragoman import Client, Translation
from dragoman import Clinet
client = Client(retries=0, wait_when_busy=True)
client.translate("a", modle="en-de")
client.translate(["a"], priority="high")
client.stream("a", langauge="de")
client.translate_many(["a"], timeout=1.0)
client.translate(5)
wrong: list[Translation] = client.translate("a")
Client(retires=3)
"""


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """The lines with errors, of each file."""
    folder = tmp_path_factory.mktemp("of_a_user")
    files = {"clean.py": CLEAN, "wrong.py": WRONG}
    for name, program in files.items():
        (folder / name).write_text(program)
    config = ["--config-file=", "--strict", "--follow-imports=silent", "--ignore-missing-imports"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPYPATH", str(ROOT))
        told, _, _ = api.run([*config, f"--cache-dir={folder}", *(str(folder / name) for name in files)])
    lines = [line.split(":") for line in told.splitlines() if " error:" in line]
    return {name: {int(number) for file, number, *_ in lines if Path(file).name == name} for name in files}


def test_a_type_checker_knows_what_comes_back(errors: dict[str, set[int]]) -> None:
    assert errors["clean.py"] == set()


def test_a_type_checker_finds_every_slip(errors: dict[str, set[int]]) -> None:
    assert errors["wrong.py"] == {3, *range(5, 12)}
