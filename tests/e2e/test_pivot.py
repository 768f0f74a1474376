"""A server that translates over a third language; both models are the default one under other names."""

from pathlib import Path

import pytest

from dragoman import Client, UnknownLanguagePairError
from tests.e2e.bundles import copy_pair
from tests.e2e.http_client import call
from tests.server_process import PATIENCE_S

TEXTS = ["Good morning. The train leaves at eight.", "Tom bought three books.", "  "]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for source, target in (("fr", "en"), ("en", "de")):
        copy_pair(tmp_path, source, target)
    return tmp_path


def test_two_models_translate_one_after_the_other(serve, models: Path) -> None:
    server = serve(f"--models={models}", "--threads=1", "--pivot-language=en")
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        halfway = [each.text for each in client.translate(TEXTS, model="fr-en")]
        expected = [each.text for each in client.translate(halfway, model="en-de")]
        translations = client.translate(TEXTS, source_language="fr", target_language="de")
        assert [each.text for each in translations] == expected
        assert {(each.model, each.pivot_model) for each in translations} == {("en-de", "fr-en")}
        streamed = {}
        for piece in client.stream(TEXTS, source_language="fr", target_language="de"):
            if piece.result is not None:
                streamed[piece.content_index] = piece.result
        assert [streamed[number] for number in range(len(TEXTS))] == translations
        with pytest.raises(UnknownLanguagePairError):
            client.translate("x", source_language="de", target_language="fr")


def test_a_text_in_the_language_that_is_wanted_does_not_go_there_and_back(serve, tmp_path: Path) -> None:
    for source, target in (("de", "en"), ("en", "de"), ("fr", "en")):
        copy_pair(tmp_path, source, target)
    server = serve(f"--models={tmp_path}", "--threads=1", "--pivot-language=en", "--http-address=127.0.0.1:0")
    german, french = "Wo ist der Bahnhof?", "Où est la gare, s'il vous plaît ?"
    with Client(server.address, timeout_s=PATIENCE_S) as client:
        elsewhere = client.translate(french, source_language="auto", target_language="de")
        assert (elsewhere.model, elsewhere.pivot_model) == ("en-de", "fr-en")
        message = r"^contents\[0\]: is in 'de', as detected .* there is translation into 'de' from en, fr$"
        with pytest.raises(UnknownLanguagePairError, match=message):
            client.translate([german, french], source_language="auto", target_language="de")
        with pytest.raises(UnknownLanguagePairError, match=r"^no translation from 'de' to 'de'; "):
            client.translate(german, source_language="de", target_language="de")
    for source in ("auto", "de"):
        answer = call(server, "POST", "/translate", {"q": german, "source": source, "target": "de"})
        assert answer.json["translatedText"] == german
    answer = call(server, "POST", "/v2/translate", {"text": [german], "target_lang": "DE"})
    assert answer.json["translations"] == [{"detected_source_language": "DE", "text": german}]
