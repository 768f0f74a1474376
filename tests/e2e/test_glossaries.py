"""Glossaries and protected placeholders of a real server: terms stand in its translations, or are named."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import grpc.aio
import pytest

from dragoman import AsyncClient, Client, GlossaryEntry, InvalidRequestError, Translation, UnknownGlossaryError
from dragoman.cli import main
from dragoman.v1 import translation_pb2 as pb
from dragoman.v1.translation_pb2_grpc import TranslationStub
from tests.e2e.bundles import copy_pair
from tests.server_process import PATIENCE_S, REPOSITORY, ServerProcess

TERMS = {"house": ["Gebäude", "Anwesen"], "Zentrix": None, "NovaTech 3000": None, "dog": "Köter"}
TEXTS = [
    "The house is big.",
    "Zentrix bought a house for NovaTech 3000.",
    "The dog sees a dog.",
    "Where is the station? Zentrix. House and doghouse.",
    "You have {count} new messages from %(name)s.",
    "Write to tom@example.org or visit https://example.com/a?b=c!",
    "{name}",
]
ASKED = {"model": "en-de", "glossary": TERMS, "protect_placeholders": True}


def wanted(text: str) -> list[tuple[str, ...]]:
    """The forms of each term and placeholder of one of the texts."""
    return {
        0: [("Gebäude", "Anwesen")],
        1: [("Zentrix",), ("Gebäude", "Anwesen"), ("NovaTech 3000",)],
        2: [("Köter",), ("Köter",)],
        3: [("Zentrix",)],
        4: [("{count}",), ("%(name)s",)],
        5: [("tom@example.org",), ("https://example.com/a?b=c",)],
        6: [("{name}",)],
    }[TEXTS.index(text)]


def check(text: str, translation: Translation) -> None:
    """Every term is there, or named."""
    counts: dict[tuple[str, ...], int] = {}
    for forms in wanted(text):
        counts[forms] = counts.get(forms, 0) + 1
    for forms, count in counts.items():
        there = sum(translation.text.count(form) for form in forms)
        assert there >= count or translation.glossary_misses, (text, translation)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "products.en-de.csv").write_text("house,Gebäude\nZentrix,\n")
    (tmp_path / "wrong.csv").write_bytes(b"\xff")
    return tmp_path


@pytest.fixture
def storing(serve, folder: Path) -> Iterator[ServerProcess]:
    return serve(f"--glossaries={folder}", "--threads=1")


def test_terms_and_placeholders_stand_in_every_kind_of_call(server: ServerProcess, client: Client) -> None:
    translations = client.translate(TEXTS, **ASKED)
    for text, translation in zip(TEXTS, translations, strict=True):
        check(text, translation)
        assert translation.glossary_misses == ()
    assert [answer.translation for answer in client.translate_many(TEXTS, **ASKED)] == translations
    deltas = ["" for _ in TEXTS]
    for piece in client.stream(TEXTS, **ASKED):
        deltas[piece.content_index] += piece.text
        if piece.result is not None:
            assert piece.result == translations[piece.content_index]
    assert deltas == [translation.text for translation in translations]

    async def alone() -> list[Translation]:
        async with AsyncClient(server.address, timeout_s=PATIENCE_S) as other:
            return [await other.translate(text, **ASKED) for text in TEXTS]

    assert asyncio.run(alone()) == translations  # as they are beside others


def test_sentences_without_terms_are_translated_as_ever(client: Client) -> None:
    plain = client.translate("Where is the station?", model="en-de")
    assert client.translate("Where is the station?", **ASKED) == plain
    assert client.translate("Where is the station? Zentrix.", **ASKED).text == f"{plain.text} Zentrix."


def test_terms_stand_in_all_that_a_call_may_ask_for_besides(client: Client) -> None:
    html = client.translate("<p><b>Zentrix</b> has a <i>house</i> &amp; {x}.</p>", **ASKED, mime_type="text/html")
    assert html.glossary_misses == ()
    assert html.text.startswith("<p>")
    assert "{x}" in html.text
    assert "<b>Zentrix</b>" in html.text
    begun = client.translate("The house is big.", **ASKED, target_prefix="Das", alternatives=3)
    assert begun.glossary_misses == ()
    assert begun.text.startswith("Das ")
    assert 2 <= len({each.text for each in begun.alternatives}) == len(begun.alternatives) <= 3
    cased = client.translate("The HOUSE is big.", model="en-de", glossary=[GlossaryEntry("house", ["Haus"], True)])
    assert "Haus" in cased.text


def test_what_a_translation_lacks_is_named(client: Client) -> None:
    # One token has no room for both.
    translation = client.translate("A house, a dog and the next dog.", **ASKED, max_target_tokens=1)
    assert translation.finish_reason == "LENGTH"
    assert "dog" in translation.glossary_misses


@pytest.mark.parametrize(
    ("options", "field", "why"),
    [
        ({"glossary": {"": "x"}}, "options.glossary.entries[0].source_term", "must have 1 to 256 characters, has 0"),
        ({"glossary": {"a": " x"}}, "options.glossary.entries[0].target_terms[0]", "must have no blanks at its ends"),
        ({"glossary": {"a\nb": "x"}}, "options.glossary.entries[0].source_term", "line breaks"),
        ({"glossary": {"a": ["x"] * 17}}, "options.glossary.entries[0].target_terms", "at most 16, holds 17"),
        ({"glossary": {str(n): "x" for n in range(1001)}}, "options.glossary.entries", "at most 1000, holds 1001"),
        ({"glossaries": ["a"] * 17}, "options.glossary.names", "at most 16, holds 17"),
        ({"glossary": {"a": "x"}, "seed": 1}, "options.glossary", "left out where options.sampling is given"),
        ({"protect_placeholders": True, "seed": 1}, "options.protect_placeholders", "options.sampling is given"),
    ],
)
def test_what_is_wrong_is_refused(client: Client, options: dict, field: str, why: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        client.translate("Good morning.", model="en-de", **options)
    [violation] = [each for each in caught.value.violations if each.field == field]
    assert why in violation.description


async def listed_by_pages(address: str) -> list[str]:
    """The names of the glossaries, one a page, which are those that the client lists."""
    names, page = [], ""
    async with grpc.aio.insecure_channel(address) as channel:
        while True:
            request = pb.ListGlossariesRequest(page_size=1, page_token=page)
            answer = await TranslationStub(channel).ListGlossaries(request, timeout=PATIENCE_S)
            names += [glossary.name for glossary in answer.glossaries]
            page = answer.next_page_token
            if not page:
                break
    async with AsyncClient(address, timeout_s=PATIENCE_S) as client:
        assert [glossary.name for glossary in await client.list_glossaries()] == names
    return names


def test_stored_glossaries_are_named_listed_and_read_again(
    storing: ServerProcess, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client(storing.address, timeout_s=PATIENCE_S) as client:
        [listed] = client.list_glossaries()
        assert (listed.name, listed.source_language, listed.entries) == ("products.en-de", "en", 2)
        asked = {"model": "en-de", "glossaries": ["products.en-de"]}
        assert "Gebäude" in client.translate("The house is big.", **asked).text
        both = client.translate("The house is big.", **asked, glossary={"house": "Anwesen"})
        assert "Anwesen" in both.text
        with pytest.raises(UnknownGlossaryError, match="no glossary 'wrong'"):
            client.translate("The house is big.", model="en-de", glossaries=["wrong"])
        (folder / "products.en-de.csv").write_text("house,Anwesen\n")
        (folder / "products.fr-de.csv").write_text("maison,Haus\n")
        storing.signal(signal.SIGHUP)
        storing.wait_for("reloaded")
        [reloaded] = [line for line in map(json.loads, storing.log) if line["event"] == "reloaded"]
        assert reloaded["errors"] == 1  # wrong.csv
        assert asyncio.run(listed_by_pages(storing.address)) == ["products.en-de", "products.fr-de"]
        assert main(["glossaries", "--address", storing.address]) == 0
        table = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert table[0] == ["NAME", "FROM", "TO", "ENTRIES"]
        assert table[1:] == [["products.en-de", "en", "de", "1"], ["products.fr-de", "fr", "de", "1"]]
        assert main(["glossaries", "--address", storing.address, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == [asdict(each) for each in client.list_glossaries()]
        assert "Anwesen" in client.translate("The house is big.", **asked).text
        with pytest.raises(
            InvalidRequestError, match=r"names\[0\]: must be for en to de, 'products.fr-de' is for fr to de"
        ):
            client.translate("The house is big.", model="en-de", glossaries=["products.fr-de"])
        assert storing.metric("glossary_segments_total") >= 3


def test_with_detection_each_text_has_the_glossaries_of_its_language(
    serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    models, glossaries = tmp_path / "models", tmp_path / "glossaries"
    glossaries.mkdir()
    for source in ("de", "fr"):
        copy_pair(models, source, "en")
        (glossaries / f"products.{source}-en.csv").write_text(f"Zentrix,{source.upper()}\n")
    (glossaries / "products.it-en.csv").write_text("casa,house\n")
    texts = ["Das große Haus ist von Zentrix.", "Où est la gare de Zentrix, s'il vous plaît ?"]
    options = {"source_language": "auto", "target_language": "en"}
    server = serve(f"--models={models}", f"--glossaries={glossaries}", "--threads=1")
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        made = client.translate(texts, **options, glossaries=["products.de-en", "products.fr-en"])
        assert ["DE" in made[0].text, "FR" in made[1].text, *(each.glossary_misses for each in made)] == [1, 1, (), ()]
        german, french = client.translate(texts, **options, glossaries=["products.de-en"])
        assert (german, french) == (made[0], client.translate(texts[1], **options))
        with pytest.raises(
            InvalidRequestError, match=r"names\[0\]: must be for .. to en, 'products.it-en' is for it to en"
        ):
            client.translate(texts, **options, glossaries=["products.it-en"])
    monkeypatch.setenv("DRAGOMAN_GLOSSARIES", str(glossaries))
    capfd.readouterr()
    for place in (["--models", str(models)], ["--address", server.address]):
        asked = ["translate", *place, "--from=auto", "--to=en", "--glossary=products.de-en", *texts]
        assert (main(asked), capfd.readouterr().out) == (0, f"{german.text}\n{french.text}\n")


def test_the_command_takes_files_and_names(server: ServerProcess, client: Client, folder: Path) -> None:
    file = folder / "products.en-de.csv"
    expected = client.translate("The house is big.", model="en-de", glossary={"house": "Gebäude"}).text
    for place in ([], ["--address", server.address]):
        run = [sys.executable, "-m", "dragoman", "translate", *place, "--glossary", str(file), "--protect-placeholders"]
        done = subprocess.run(
            [*run, "--json", "The house is big.", "{x}"], capture_output=True, cwd=REPOSITORY, check=True
        )
        first, second = map(json.loads, done.stdout.splitlines())
        assert (first["translation"], first["glossary_misses"], second["translation"]) == (expected, [], "{x}")
        bad = subprocess.run(
            [*run[:-2], str(folder / "wrong.csv"), "a"], capture_output=True, cwd=REPOSITORY, check=False
        )
        assert (bad.returncode, bad.stderr.count(b"\n")) == (2, 1)
        assert b"must be UTF-8" in bad.stderr
