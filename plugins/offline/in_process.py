"""The functions of `dragoman translate`, `detect`, `score` and `models` without a server: they read and use bundles."""

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import access
from dragoman.answers import DetectedLanguage, Score, Translation, score_of, translation_of
from dragoman.bundle import Bundle, Manifest, bundles_in
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.commands.model_source import choose, detects
from dragoman.commands.translations import untranslated
from dragoman.errors import BundleError, DataError
from dragoman.language import translates
from dragoman.options import config_of
from plugins.offline.texts import score_offline, translate_each
from plugins.scoring.method import scored
from plugins.scoring.pair import Pair
from service import model_locations
from service.calls.texts_by_language import group_by_language
from service.decode import Decode
from service.handlers import validation
from service.handlers.answer import translated
from service.handlers.glossaries import glossaries_of
from service.options import SCORING, RequestOptions
from service.registry import capacity
from service.registry.catalog import Catalog, ServedModel
from service.registry.folders import check_names
from service.settings import Settings, load
from service.text.detection import MOST_GUESSES, CandidateLanguages, agree, new_detector
from service.text.translator import Limits, Translator
from service.wire import HTML

if TYPE_CHECKING:
    from plugins.offline.engine import OfflineEngine

Models = str | Path | Sequence[str] | None
_Bundles = list[tuple[Path, Manifest]]


def folders(models: Models) -> tuple[str, ...]:
    """List the folders of bundles; missing models are imported.

    Args:
        models: the names, as in the setting `models`; None: from the environment, else the server's default models.

    Raises:
        DataError: a name is invalid, or means models that only a server can combine.
    """
    found = model_locations.find(read_settings(models), bring_in=True)
    if found.pivot:
        raise DataError(f"two models would translate over {found.pivot}, which only a server does: dragoman serve")
    return tuple(str(folder.resolve()) for folder in found.folders)


def manifests(models: Models) -> _Bundles:
    """List bundles with their manifests, sorted by the names of the models.

    Raises:
        BundleError: there is no bundle, or a manifest cannot be read.
        DataError: as `folders`.
    """
    found: list[tuple[Path, Manifest]] = []
    for folder in map(Path, folders(models)):
        found += [(path, Manifest.read(path)) for path in bundles_in(folder)]
    return sorted(found, key=lambda bundle: bundle[1].name)


def translator(
    models: Models, *, model: str, source: str, target: str, **options: Any
) -> Callable[[list[str]], list[Translation]]:
    """Load the chosen model, and return a function that translates texts with it.

    Args:
        source: BCP-47 code of the source language; "": any; "auto": the detected language of each text.
        options: the options of the command line, see :func:`_translator`.

    Raises:
        DragomanError: no single model fits, a bundle cannot be read, or a setting or an option is invalid.
    """
    bundles = _bundles(models)
    if detects(own := [manifest for _, manifest in bundles], model, source, target):
        return _detecting_translator(bundles, own, model=model, target=target, **options)
    return _translator(bundles, model=model, source=source, target=target, **options)


def _translator(
    bundles: _Bundles,
    *,
    model: str,
    source: str,
    target: str,
    html: bool,
    sources: Sequence[str] = (),
    **options: Any,
) -> Callable[[list[str]], list[Translation]]:
    """Return a function that translates texts with one model; requests are checked as by a server.

    Args:
        source: BCP-47 code of the source language; "": any.
        sources: all languages among which `source` was detected.
        options: further options of `dragoman.options.Options`; glossaries are in the folder of the settings.

    Raises:
        DragomanError: no single model fits, a bundle cannot be read, or a setting or an option is invalid.
        ValueError: a number does not fit the request.
    """
    settings = read_settings()
    bundle = _chosen(bundles, model, source, target)
    manifest, slots = bundle.manifest, capacity.slots_of(bundle.manifest, settings)
    translator = Translator(manifest, bundle.tokenizer(), Limits.of(settings), slots=slots)
    glossaries = glossaries_of(settings.glossaries if options.get("glossaries") else "")
    with redirect_stdout(sys.stderr):  # the log
        glossaries.refresh()
    config = config_of(
        in_order=True,
        model=manifest.name,
        source_language=source,
        target_language=target,
        mime_type=HTML if html else "",
        **options,
    )
    catalog = Catalog([ServedModel(manifest, slots)])
    every = Catalog(ServedModel(each, slots) for _, each in bundles)
    others = [every.choose(model, code, target) for code in sources]
    route = validation.route(config, source, catalog, settings, glossaries, others, translator=translator)
    engine = _engine(bundle, settings)

    def translate(texts: list[str]) -> list[Translation]:
        outcomes = translate_each(translator, engine, texts, route.options)
        return [translation_of(translated(outcome, route)) for outcome in outcomes]

    return translate


def _detecting_translator(
    bundles: _Bundles, own: Sequence[Manifest], *, model: str, target: str, **options: Any
) -> Callable[[list[str]], list[Translation]]:
    """Return a function that translates each text with a model of its language, which is loaded at first use.

    Raises:
        DragomanError: no model fits.
    """
    named = [manifest for manifest in own if model in ("", manifest.name)]
    codes = dict.fromkeys(code for manifest in named for code in manifest.source_languages)
    sources = [code for code in codes if any(translates(each, code, target) for each in named) and code != target]
    if not sources:
        choose(own, model, "", target)  # raises an error that lists the models
    candidates = CandidateLanguages.of(sources, _languages(own))
    detector = new_detector()
    options |= {"model": model, "target": target, "sources": sources}
    translator_of = cache(lambda code: _translator(bundles, source=code, **options))

    def translate(texts: list[str]) -> list[Translation]:
        rankings = [detector.rank(text, candidates, html=options["html"]) for text in texts]
        found = group_by_language(agree(rankings, list(map(len, texts))), sources, target, model, {})
        made = {number: untranslated(error) for number, error in found.refused.items()}
        for code, numbers in found.texts.items():
            made |= zip(numbers, translator_of(code)([texts[number] for number in numbers]), strict=True)
        return [
            replace(made[number], detected_language=guess.language, detection_confidence=guess.confidence)
            if guess
            else made[number]
            for number, guess in enumerate(found.detected)
        ]

    return translate


def detector(models: Models, *, html: bool) -> Callable[[list[str]], list[list[DetectedLanguage]]]:
    """Return a function that gives the probable languages of texts, the most probable first.

    Raises:
        BundleError: there is no bundle, or a manifest cannot be read.
    """
    own = [manifest for _, manifest in manifests(models)]
    candidates = CandidateLanguages.of(
        sorted({code for each in own for code in each.source_languages}), _languages(own)
    )
    detector = new_detector()

    def detect(texts: list[str]) -> list[list[DetectedLanguage]]:
        rankings = [detector.rank(text, candidates, html=html) for text in texts]
        return [[DetectedLanguage(*guess) for guess in ranking[:MOST_GUESSES]] for ranking in rankings]

    return detect


def scorer(
    models: Models, *, model: str, source: str, target: str
) -> Callable[[Sequence[tuple[str, str]]], list[Score]]:
    """Load a model, and return a function that scores pairs of texts and translations with it.

    Args:
        model: the name of the model; "": any.
        source: BCP-47 code of the language of the texts; "": any.
        target: BCP-47 code of the language of the translations; "": any.

    Raises:
        DragomanError: no single model fits, a bundle cannot be read, or a setting is invalid.
    """
    settings = read_settings()
    bundle = _chosen(_bundles(models), model, source, target)
    manifest = bundle.manifest
    translator = Translator(manifest, bundle.tokenizer())
    engine = _engine(bundle, settings)
    source, target = manifest.languages.told(source, target)
    options = RequestOptions(decoding=SCORING, source_language=source, target_language=target)

    def score(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        outcomes = score_offline(translator, engine, [Pair(*pair) for pair in pairs], options)
        return [score_of(scored(outcome, manifest.name)) for outcome in outcomes]

    return score


def _languages(manifests: Iterable[Manifest]) -> set[str]:
    return {code for each in manifests for code in (*each.source_languages, *each.target_languages)}


def read_settings(models: Models = None) -> Settings:
    """Read the settings from the environment; given models replace the setting `models`.

    Raises:
        SettingsError: a setting is unknown or invalid.
    """
    return load({"models": models} if models else {}, other_variables={access.API_KEY_VARIABLE, ADDRESS_VARIABLE})


def _bundles(models: Models) -> _Bundles:
    """List bundles with unique model names; raises BundleError if two have the same name."""
    bundles = manifests(models)
    check_names(dict(bundles))
    return bundles


def _chosen(bundles: _Bundles, model: str, source: str, target: str) -> Bundle:
    """Open the chosen bundle."""
    manifest = choose([manifest for _, manifest in bundles], model, source, target)
    return Bundle.open(next(path for path, other in bundles if other is manifest))


def _engine(bundle: Bundle, settings: Settings) -> "OfflineEngine":
    """Load the engine, and decode a token: graphs that are not as the manifest says may fail only then.

    Raises:
        BundleError: a graph cannot be loaded or run.
    """
    from plugins.offline.engine import OfflineEngine

    slots = capacity.slots_of(bundle.manifest, settings)
    try:
        engine = OfflineEngine(
            bundle,
            device=settings.device,
            threads=settings.decoding_threads(),
            run_threads=capacity.run_threads_of(bundle, settings),
            slots=slots,
            shortlist=settings.shortlists,
        )
        with redirect_stdout(sys.stderr):  # the log
            engine.decode([Decode([bundle.manifest.eos_id], max_target_tokens=1)])
    except BundleError:
        raise
    except Exception as error:  # onnxruntime's exceptions share no base class of its own
        raise BundleError(f"{bundle.path}: cannot be run: {' '.join(str(error).split())}") from error
    return engine
