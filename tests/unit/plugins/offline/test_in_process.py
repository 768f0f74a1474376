"""Bundles that are read, and a model that translates, without a server."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dragoman.bundle import Manifest
from dragoman.errors import (
    BundleError,
    InvalidRequestError,
    TextFailedError,
    UnknownLanguagePairError,
    UnknownModelError,
)
from plugins.offline.in_process import manifests, scorer, translator
from service.settings import DEFAULT_MODELS
from tests.e2e.bundles import copy_pair
from tests.engine_harness import fail_encoder

BUNDLE = Path(__file__).parents[4] / "models" / "en-de" / "bundle"


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_MODELS", raising=False)


@pytest.fixture
def folder(tmp_path: Path, manifest: Manifest) -> Path:
    for place, name in (("a", "second"), ("b/c", "first")):
        (tmp_path / place).mkdir(parents=True)
        text = manifest.model_copy(update={"name": name}).model_dump_json()
        (tmp_path / place / "bundle.json").write_text(text)
    return tmp_path


def test_bundles_are_listed_by_the_names_of_their_models(folder: Path) -> None:
    assert [(path, found.name) for path, found in manifests(folder)] == [
        (folder / "b/c", "first"),
        (folder / "a", "second"),
    ]


def test_without_a_folder_it_is_that_of_the_environment_else_the_default(folder: Path, monkeypatch) -> None:
    assert [path for path, _ in manifests(None)] == [path for path, _ in manifests(DEFAULT_MODELS)]
    monkeypatch.setenv("DRAGOMAN_MODELS", str(folder))
    assert len(manifests(None)) == 2


def test_the_default_is_not_the_folder_models_of_the_current_folder(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert [path for path, _ in manifests(None)] == [DEFAULT_MODELS / name / "bundle" for name in ("de-en", "en-de")]


def test_no_bundle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="there is no bundle"):
        manifests(tmp_path)


def test_two_bundles_of_one_name_are_an_error_that_says_where_they_are(folder: Path, manifest: Manifest) -> None:
    for place in ("a", "b/c"):
        (folder / place / "bundle.json").write_text(manifest.model_dump_json())
    with pytest.raises(BundleError, match=f"'en-de': {folder}/a, {folder}/b/c; export one of them with another --name"):
        translator(folder, model="", source="", target="", html=False)


@pytest.fixture
def two_models(tmp_path: Path) -> Path:
    """The default model, as one that reads English, and as one that reads German."""
    copy_pair(tmp_path, "en", "it")
    copy_pair(tmp_path, "de", "it")
    return tmp_path


def test_each_text_is_translated_by_a_model_of_its_language(two_models: Path) -> None:
    translate = translator(two_models, model="", source="auto", target="it", html=False)
    texts = ["Where is the station?", "Wo ist der Bahnhof?", "42", "Где находится вокзал?", "Come stai oggi?"]
    made = translate(texts)
    assert [(each.detected_language, each.model) for each in made[:4]] == [
        ("en", "en-it"),
        ("de", "de-it"),
        ("", "en-it"),
        ("ru", ""),
    ]
    assert made[0].text == translator(two_models, model="en-it", source="", target="", html=False)(texts[:1])[0].text
    assert [type(each.error) for each in made] == [type(None)] * 3 + [UnknownLanguagePairError] * 2
    assert "into 'it' from de, en" in made[3].error.message
    assert translate(texts[1:2]) == made[1:2]


def test_the_language_decides_where_nothing_is_said_and_each_is_translated_into_one(two_models: Path) -> None:
    texts = ["Where is the station?", "Wo ist der Bahnhof?"]
    made = translator(two_models, model="", source="", target="", html=False)(texts)
    assert [each.model for each in made] == ["en-it", "de-it"]
    copy_pair(two_models, "en", "fr")
    with pytest.raises(InvalidRequestError, match="there are several models"):
        translator(two_models, model="", source="", target="", html=False)


def test_detection_needs_a_model_that_is_meant(two_models: Path) -> None:
    with pytest.raises(UnknownLanguagePairError, match="from any language to fr"):
        translator(two_models, model="", source="auto", target="fr", html=False)
    with pytest.raises(UnknownModelError):
        translator(two_models, model="xx", source="auto", target="", html=False)
    [german] = translator(two_models, model="en-it", source="auto", target="", html=False)(["Guten Tag, Frau Huber"])
    assert isinstance(german.error, UnknownLanguagePairError)


def test_a_model_translates_and_says_how_it_went() -> None:
    translate = translator(BUNDLE, model="", source="en", target="de", html=False)
    morning, empty = translate(["Good morning.", " "])
    assert (morning.text, morning.model, morning.finish_reason) == ("Guten Morgen.", "en-de", "EOS")
    assert (morning.segments, morning.error) == (1, None)
    assert morning.source_tokens > 0
    assert morning.target_tokens > 0
    assert (empty.text, empty.segments) == (" ", 0)


@pytest.mark.parametrize("wrong", [{"vocabulary_size": 15_999}, {"decoder_cell": "ssru"}, {"decoder_layers": 3}])
def test_a_manifest_that_contradicts_the_graphs_is_an_error_in_one_line(wrong: dict[str, Any], tmp_path: Path) -> None:
    shutil.copytree(BUNDLE, tmp_path / "bundle")
    Manifest.read(BUNDLE).model_copy(update=wrong).write(tmp_path / "bundle")
    with pytest.raises(BundleError, match=f"^{tmp_path}/bundle: cannot be run: [^\n]+$"):
        translator(tmp_path / "bundle", model="", source="en", target="de", html=False)


def test_a_text_on_which_the_graph_fails_hurts_no_other(monkeypatch, capsys) -> None:
    texts = ["Good morning.", "Good morning. The" + " long" * 20 + " road.", "Where is the station?"]
    translate = translator(BUNDLE, model="", source="en", target="de", html=False)
    score = scorer(BUNDLE, model="", source="en", target="de")
    fail_encoder(monkeypatch, lambda source: len(source) > 20)
    made, scores = translate(texts), score([(text, "Guten Morgen.") for text in texts])
    assert [type(each.error) for each in (*made, *scores)] == [type(None), TextFailedError, type(None)] * 2
    assert [each.text for each in made] == ["Guten Morgen.", "", "Wo ist der Bahnhof?"]
    said = capsys.readouterr()
    assert (said.out, "PlantedError" in said.err) == ("", True)  # on standard output come translations


def test_html_keeps_its_tags() -> None:
    [translation] = translator(BUNDLE, model="en-de", source="", target="", html=True)(["<p>Good morning.</p>"])
    assert translation.text == "<p>Guten Morgen.</p>"


def test_no_model_is_named(folder: Path) -> None:
    with pytest.raises(UnknownModelError, match="no model 'x'; there are: first, second"):
        translator(folder, model="x", source="", target="", html=False)


def test_one_alternative_is_the_translation_with_its_score() -> None:
    [morning] = translator(BUNDLE, model="", source="", target="", html=False, alternatives=1)(["Good morning."])
    [alternative] = morning.alternatives
    assert (alternative.text, alternative.finish_reason, morning.beam_size) == ("Guten Morgen.", "EOS", 1)
    assert alternative.score == alternative.mean_log_probability < 0
    assert morning.mean_log_probability is None


def test_alignments_have_the_places_of_words() -> None:
    text = "Where is the station?"
    [found] = translator(BUNDLE, model="", source="", target="", html=False, alignments=True)([text])
    words = [
        (text[each.source_start : each.source_end], found.text[each.target_start : each.target_end])
        for each in found.alignments
    ]
    assert {("Where", "Wo"), ("is", "ist"), ("station", "Bahnhof")} <= set(words)


def test_a_doubtful_sentence_has_a_low_estimate() -> None:
    text = "Good morning. Im realy sory for teh late reply."
    [found] = translator(BUNDLE, model="", source="", target="", html=False, quality_estimate=True)([text])
    [plain] = translator(BUNDLE, model="", source="", target="", html=False)([text])
    assert (plain.text, plain.quality_estimate, plain.segment_qualities) == (found.text, None, ())
    good, bad = found.segment_qualities
    assert found.text[good.target_start : good.target_end] == "Guten Morgen."
    assert (good.quality_estimate > 0.8, bad.quality_estimate < 0.5) == (True, True)
    assert bad.quality_estimate < found.quality_estimate < good.quality_estimate


def test_an_impossible_beam_is_refused_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_SLOTS", "3")
    with pytest.raises(
        InvalidRequestError, match=r"^options.beam_size: must be at most 3, the number of slots, is 4 \(and 1"
    ):
        translator(BUNDLE, model="", source="", target="", html=False, beam_size=4, alternatives=2, length_penalty=11.0)
