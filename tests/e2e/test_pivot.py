"""A server that translates over a third language; both models are the default one under other names."""

from pathlib import Path

import pytest

from dragoman import Client, UnknownLanguagePairError
from tests.e2e.bundles import copy_pair
from tests.server_process import PATIENCE_S

TEXTS = ["Good morning. The train leaves at eight.", "Tom bought three books.", "  "]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for source, target in (("fr", "en"), ("en", "de")):
        copy_pair(tmp_path, source, target)
    return tmp_path


def test_two_models_translate_one_after_the_other(launch, models: Path) -> None:
    server = launch(f"--models={models}", "--threads=1", "--pivot-language=en")
    server.wait_until_serving()
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
