"""A server with a model of many languages, beside one of a pair."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import Client, InvalidRequestError, UnknownLanguagePairError
from dragoman.bundle import Bundle
from plugins.offline.engine import OfflineEngine
from plugins.offline.texts import translate_offline
from service.options import RequestOptions
from service.text.translator import Translator
from tests.e2e.bundles import copy_bundle
from tests.imported import imported
from tests.server_process import BUNDLE, PATIENCE_S, ServerProcess, serving

TARGETS = {"de": "deu_Latn", "fr": "fra_Latn", "zh-Hant": "zho_Hant"}
TEXTS = ["The train leaves at eight.", "Tom bought three books."]

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    """What the engine makes of the texts offline, by target language."""
    bundle = Bundle.open(imported("nllb").bundle)
    translator, engine = Translator(bundle.manifest, bundle.tokenizer()), OfflineEngine(bundle, slots=2, threads=1)
    options = {code: RequestOptions(source_language="en", target_language=code) for code in TARGETS}
    return {
        code: [result.text for result in translate_offline(translator, engine, TEXTS, asked)]
        for code, asked in options.items()
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    copy_bundle(BUNDLE, models / "en-de")
    copy_bundle(imported("nllb").bundle, models / "nllb")
    with serving(f"--models={models}", "--threads=1") as server:
        yield server


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        yield client


def test_the_same_text_goes_into_each_language_and_no_cache_mixes_them(client: Client, expected) -> None:
    assert len({tuple(texts) for texts in expected.values()}) == len(TARGETS)
    for _ in range(2):
        for code, alias in TARGETS.items():
            for asked in (code, alias, alias.lower()):
                made = client.translate(TEXTS, model="nllb", source_language="eng_Latn", target_language=asked)
                assert [each.text for each in made] == expected[code]


def test_languages_are_in_one_batch_at_a_time(client: Client, expected) -> None:
    calls = {
        code: client.translate_many(iter(TEXTS * 50), model="nllb", source_language="en", target_language=code)
        for code in TARGETS
    }
    for answers in zip(*calls.values(), strict=True):
        for code, (number, translation) in zip(calls, answers, strict=True):
            assert translation.text == expected[code][number % 2]


def test_the_model_of_a_pair_goes_first(client: Client) -> None:
    assert client.translate("Hello", source_language="en", target_language="de").model == "en-de"
    assert client.translate("Hello", source_language="en", target_language="fr").model == "nllb"
    assert client.translate("Hello", source_language="de", target_language="en").model == "nllb"


def test_the_list_says_all_languages(client: Client) -> None:
    pair, many = client.list_models()
    assert (pair.source_languages, pair.target_languages, pair.family) == (("en",), ("de",), "transformer")
    assert (pair.source_language, many.source_language) == ("en", "")
    assert {"en", *TARGETS} <= set(many.source_languages) == set(many.target_languages)
    assert many.family == "m2m_100"


def test_a_language_that_is_needed_and_missing_is_named_or_detected(client: Client, expected) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        client.translate("Hello", model="nllb")
    assert [violation.field for violation in refused.value.violations] == ["target_language_code"]
    assert client.translate(TEXTS[0], model="nllb", target_language="fr").text == expected["fr"][0]
    with pytest.raises(UnknownLanguagePairError):
        client.translate("Hello", model="nllb", source_language="en", target_language="en")


def test_the_command_asks_for_a_language_too(server: ServerProcess, expected, capsys) -> None:
    from dragoman.cli import main

    flags = ["translate", f"--address={server.address}", "--model=nllb", "--from=en", "--to=fr"]
    assert main([*flags, *TEXTS]) == 0
    assert capsys.readouterr().out.splitlines() == [text.replace("\n", " ") for text in expected["fr"]]
    assert main(["translate", f"--models={Path(imported('nllb').bundle)}", "--from=en", "--to=fr", *TEXTS]) == 0
    assert capsys.readouterr().out.splitlines() == expected["fr"]
    assert main(flags[:-1] + TEXTS) == 2
    assert "say which with --to" in capsys.readouterr().err
