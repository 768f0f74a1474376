import gc
import weakref

import pytest

from dragoman.errors import UnknownLanguagePairError, UnknownModelError
from dragoman.language_marks import LanguageMarks, Languages
from service.queue.mailbox import Mailbox
from service.registry.catalog import Catalog, Pipeline, ServedModel
from service.text.translator import Translator
from tests.unit.service.played import intake_of


@pytest.fixture
def catalog(manifest, tokenizer) -> Catalog:
    def model(name: str, source: str, target: str) -> ServedModel:
        own = manifest.model_copy(update={"name": name, "languages": Languages.pair(source, target)})
        mailbox = Mailbox(100)
        return ServedModel(own, 32, Pipeline(Translator(own, tokenizer), mailbox, intake_of(mailbox)))

    return Catalog(
        [
            model("small", "en", "de"),
            model("big", "en", "de"),
            model("swiss", "en", "de-CH"),
            model("back", "de", "en"),
        ]
    )


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (("", "en", "de"), "big"),  # the first by name
        (("small", "en", "de"), "small"),
        (("small", "", ""), "small"),
        (("small", "", "de"), "small"),
        (("", "EN-us", "de"), "big"),
        (("", "en", "de-AT"), "big"),
        (("", "en", "de-ch"), "swiss"),  # the closest
        (("", "en", "de-CH-1996"), "swiss"),
        (("", "de", "en"), "back"),
    ],
)
def test_the_model_of_a_request(catalog, request_, name) -> None:
    assert catalog.choose(*request_).model.manifest.name == name


@pytest.mark.parametrize("request_", [("", "en", "fr"), ("", "en", "d"), ("", "deu", "en"), ("swiss", "en", "de")])
def test_an_unknown_pair(catalog, request_) -> None:
    with pytest.raises(UnknownLanguagePairError, match="no translation from"):
        catalog.choose(*request_)


MANY = Languages(
    sources=("en", "de", "it"),
    targets=("en", "de", "it"),
    marks={"it": LanguageMarks(aliases=("ita_Latn",)), "en": LanguageMarks(aliases=("eng_Latn",))},
)


@pytest.mark.parametrize(
    ("request_", "chosen"),
    [
        (("", "en", "de"), ("big", "en", "de")),  # a pair's own model
        (("many", "en", "de"), ("many", "en", "de")),
        (("", "en", "it"), ("many", "en", "it")),
        (("", "eng_Latn", "ITA_latn"), ("many", "en", "it")),
        (("", "it-CH", "en-GB"), ("many", "it", "en")),
        (("many", "", "it"), ("many", "", "it")),
        (("many", "", ""), ("many", "", "")),
        (("small", "", ""), ("small", "en", "de")),
    ],
)
def test_a_model_of_many_languages(catalog, manifest, tokenizer, request_, chosen) -> None:
    own, mailbox = manifest.model_copy(update={"name": "many", "languages": MANY}), Mailbox(100)
    catalog = Catalog(
        [*catalog, ServedModel(own, 32, Pipeline(Translator(own, tokenizer), mailbox, intake_of(mailbox)))]
    )
    choice = catalog.choose(*request_)
    assert (choice.model.manifest.name, choice.source, choice.target) == chosen
    assert catalog.knows("ita_Latn")
    assert not catalog.knows("deu_Latn")
    for name in ("", "many"):
        with pytest.raises(UnknownLanguagePairError):
            catalog.choose(name, "it", "it-CH")


def test_a_text_whose_language_does_not_show_is_in_one_with_the_target(catalog) -> None:
    assert (catalog.first_source("de"), catalog.first_source("de-AT"), catalog.first_source("en")) == ("en", "en", "de")
    assert catalog.first_source() == catalog.first_source("fr") == "de"


class Asked(str):
    """What a request says; a test sees whether it is kept."""


def test_sources_are_cached_and_what_is_no_language_or_model_is_not_kept(catalog) -> None:
    assert catalog.sources("", "de") is catalog.sources("", "de")
    language, name = Asked("English"), Asked("English")
    kept = weakref.ref(language), weakref.ref(name)
    assert catalog.sources("", language) == catalog.sources("small", language) == ()
    with pytest.raises(UnknownModelError):
        catalog.sources(name, "de")
    del language, name
    gc.collect()
    assert [each() for each in kept] == [None, None]


def test_an_unknown_model(catalog) -> None:
    with pytest.raises(UnknownModelError, match="no model 'Small'; there are: back, big, small, swiss"):
        catalog.choose("Small", "en", "de")


def test_models_are_ordered_by_name(catalog) -> None:
    assert [model.manifest.name for model in catalog] == ["back", "big", "small", "swiss"]


@pytest.mark.parametrize("request_", [("", "de", "de"), ("", "de-AT", "de"), ("", "de", "de-DE")])
def test_no_text_goes_over_the_pivot_language_back_into_its_own(catalog, request_) -> None:
    served = Catalog(catalog, "en")
    with pytest.raises(UnknownLanguagePairError, match="no translation from"):
        served.choose(*request_)
    assert served.sources("", "de") == ("en",)
    assert served.choose("", "de", "de-CH").model.manifest.name == "swiss"  # is not what any German text is in


@pytest.mark.parametrize("pivot", ["", "en"])
def test_pairs_are_those_that_are_served(catalog, manifest, tokenizer, pivot: str) -> None:
    own = manifest.model_copy(update={"name": "many", "languages": MANY})
    mailbox = Mailbox(100)
    many = ServedModel(own, 32, Pipeline(Translator(own, tokenizer), mailbox, intake_of(mailbox)))
    languages = Languages.pair("fr", "en")
    french = ServedModel(
        manifest.model_copy(update={"name": "fr-en", "languages": languages}),
        32,
        Pipeline(many.in_memory().translator, mailbox, intake_of(mailbox)),
    )
    assert not Catalog([french]).needs_target
    served = Catalog([*catalog, many, french], pivot)
    assert served.needs_target
    pairs = {(source, target) for source, targets in served.pairs.items() for target in targets}
    targets = {target for model in served for target in model.manifest.target_languages}
    possible = {(source, target) for target in targets for source in served.sources("", target) if source != target}
    assert pairs <= possible
    assert possible - pairs == (
        set() if pivot else {("it", "de-CH")}
    )  # a region that has no model, served all the same
    assert (("fr", "de") in pairs) is bool(pivot)
