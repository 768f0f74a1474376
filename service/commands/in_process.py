"""What `dragoman translate`, `detect`, `score` and `models` do without a server: read bundles, and use one of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman import access
from dragoman.answers import (
    Alternative,
    DetectedLanguage,
    Score,
    SegmentQuality,
    TokenScore,
    Translation,
    WordAlignment,
)
from dragoman.bundle import Bundle, Manifest, find_bundles, no_bundles
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.commands.model_source import choose, detects
from dragoman.errors import DataError, DragomanError
from dragoman.glossary import GlossaryEntry
from dragoman.language import translates
from service import shelf
from service.calls.limits import bad_beam, bad_prefix, bad_sampling, bad_terms_beside, raise_if_any
from service.calls.spread import spread
from service.options import DEFAULT_LENGTH_PENALTY, SCORING, Decoding, RequestOptions, Sampling, beam_size_of
from service.registry import capacity
from service.registry.glossaries import Glossaries
from service.registry.reload_plan import check_names
from service.settings import Settings, load
from service.terms import Index, Terms
from service.text.detection import MOST_GUESSES, LanguageDetector, Tongues, agree
from service.text.pair import Pair
from service.text.result import TextResult
from service.text.translator import Limits, Translator

if TYPE_CHECKING:
    from service.engine.offline import OfflineEngine

Models = str | Path | Sequence[str] | None


def folders(models: Models) -> tuple[str, ...]:
    """List the folders of bundles; what is not there yet is imported.

    Args:
        models: their names, as the setting `models`; None: that of the environment, else the models of the server.

    Raises:
        DataError: a name means nothing, or models that only a server can put together.
    """
    found = shelf.bring(read_settings(models))
    if found.pivot:
        raise DataError(f"two models would translate over {found.pivot}, which only a server does: dragoman serve")
    return tuple(str(folder.resolve()) for folder in found.folders)


def manifests(models: Models) -> list[tuple[Path, Manifest]]:
    """List bundles with their manifests, by the names of the models.

    Raises:
        BundleError: there is none, or a manifest cannot be read.
        DataError: as `folders`.
    """
    found: list[tuple[Path, Manifest]] = []
    for folder in map(Path, folders(models)):
        if not (paths := find_bundles(folder)):
            raise no_bundles(folder)
        found += [(path, Manifest.read(path)) for path in paths]
    return sorted(found, key=lambda bundle: bundle[1].name)


def translator(
    models: Models, *, model: str, source: str, target: str, **options: Any
) -> Callable[[list[str]], list[Translation]]:
    """Load the model that is meant, and give the function that translates texts with it.

    Args:
        model: its name; "": any.
        source: BCP-47 code of the language to translate from; "": any; "auto": that of each text, which is detected.
        target: of the language to translate into; "": any.
        options: as the command line has them, see :func:`_translator`.

    Raises:
        DragomanError: no one model is meant, a bundle cannot be read, or a setting or an option is impossible.
    """
    bundles = manifests(models)
    check_names(dict(bundles))
    own = [manifest for _, manifest in bundles]
    if detects(own, model, source, target):
        return _detecting_translator(models, own, model=model, target=target, **options)
    return _translator(models, model=model, source=source, target=target, **options)


def _translator(
    models: Models,
    *,
    model: str,
    source: str,
    target: str,
    html: bool,
    beam_size: int = 0,
    length_penalty: float | None = None,
    alternatives: int = 0,
    target_prefix: str = "",
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    alignments: bool = False,
    quality_estimate: bool = False,
    glossary: Sequence[GlossaryEntry] = (),
    glossaries: Sequence[str] = (),
    protect_placeholders: bool = False,
) -> Callable[[list[str]], list[Translation]]:
    """Give the function that translates texts with one model.

    Args:
        model: name of the model that is meant; "": any.
        source: BCP-47 code of the language to translate from; "": any.
        target: of the language to translate into; "": any.
        html: whether the texts are HTML.
        beam_size: hypotheses that are kept at each step; 0: as the settings say, or as many as alternatives are wanted.
        length_penalty: of their scores; None: the default.
        alternatives: of the best translations, how many are listed.
        target_prefix: what each translation begins with.
        temperature: where this or one of the following is given, tokens are drawn; None: the default.
        top_k: of how many tokens one is drawn; None: of all.
        top_p: of tokens of which probability one is drawn; None: of all.
        seed: of the draws; None: one is drawn.
        alignments: whether it is told which words became which.
        quality_estimate: whether it is told how probable it is that a reader accepts each translation.
        glossary: terms with given translations.
        glossaries: names of glossaries in the folder that the settings name.
        protect_placeholders: whether placeholders stay as they are.

    Raises:
        DragomanError: no one model is meant, a bundle cannot be read, or a setting or an option is impossible.
    """
    settings = read_settings()
    bundle = _chosen(models, model, source, target)
    manifest = bundle.manifest
    slots = capacity.slots_of(manifest, settings)
    penalty = DEFAULT_LENGTH_PENALTY if length_penalty is None else length_penalty
    translator = Translator(manifest, bundle.tokenizer(), Limits.of(settings), slots=slots)
    drawn = any(value is not None for value in (temperature, top_k, top_p, seed))
    sampling = Sampling.of(seed=seed, temperature=temperature, top_k=top_k or 0, top_p=top_p) if drawn else None
    bad = [*bad_beam(beam_size, penalty, alternatives, slots, sampled=drawn)]
    bad += bad_sampling(sampling) if sampling else ()
    bad += bad_terms_beside(glossary=bool(glossary or glossaries), placeholders=protect_placeholders) if drawn else ()
    raise_if_any([*bad, *bad_prefix(target_prefix, translator, manifest.max_target_tokens)])
    size = beam_size_of(beam_size, alternatives, 1 if drawn else settings.beam_size)
    engine = _engine(bundle, settings)
    source, target = manifest.languages.told(source, target)
    indexes = [Index(glossary)] if glossary else []
    if glossaries:
        stored = Glossaries(settings.glossaries)
        stored.start()
        indexes += [stored.find(name).terms for name in glossaries]
    terms = Terms(indexes, protects_placeholders=protect_placeholders) if indexes or protect_placeholders else None
    options = RequestOptions(
        decoding=Decoding.of(beam_size=size, length_penalty=penalty, alternatives=alternatives, sampling=sampling),
        source_language=source,
        target_language=target,
        has_tags=html,
        alternatives=alternatives,
        alignments=alignments,
        quality_estimate=quality_estimate,
        prefix_ids=translator.prefix_ids(target_prefix),
        terms=terms,
    )

    def translate(texts: list[str]) -> list[Translation]:
        results = translator.translate_offline(engine, texts, options)
        return [_translation(result, manifest, size, sampling and sampling.seed) for result in results]

    return translate


def _detecting_translator(
    models: Models, own: Sequence[Manifest], *, model: str, target: str, **options: Any
) -> Callable[[list[str]], list[Translation]]:
    """Give the function that translates texts, each with a model of its language, which is loaded when it is needed.

    Args:
        own: the manifests of the models.

    Raises:
        DragomanError: no model is meant.
    """
    named = [manifest for manifest in own if model in ("", manifest.name)]
    codes = dict.fromkeys(code for manifest in named for code in manifest.source_languages)
    sources = [code for code in codes if any(translates(each, code, target) for each in named) and code != target]
    if not sources:
        choose(own, model, "", target)  # it says what there is
    tongues = Tongues.of(sources, _languages(own))
    detector = LanguageDetector()
    translator_of = cache(lambda code: _translator(models, model=model, source=code, target=target, **options))

    def translate(texts: list[str]) -> list[Translation]:
        rankings = [detector.rank(text, tongues, html=options["html"]) for text in texts]
        found = spread(agree(rankings, list(map(len, texts))), sources, target, model, {})
        made = {
            number: Translation("", "", 0, 0, "UNSPECIFIED", 0, error=error) for number, error in found.refused.items()
        }
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
    """Give the function that says in which languages texts are, the most probable first.

    Args:
        html: whether the texts are HTML.

    Raises:
        BundleError: there is none, or a manifest cannot be read.
    """
    own = [manifest for _, manifest in manifests(models)]
    tongues = Tongues.of(sorted({code for each in own for code in each.source_languages}), _languages(own))
    detector = LanguageDetector()

    def detect(texts: list[str]) -> list[list[DetectedLanguage]]:
        rankings = [detector.rank(text, tongues, html=html) for text in texts]
        return [[DetectedLanguage(*guess) for guess in ranking[:MOST_GUESSES]] for ranking in rankings]

    return detect


def scorer(
    models: Models, *, model: str, source: str, target: str
) -> Callable[[Sequence[tuple[str, str]]], list[Score]]:
    """Load a model, and give the function that scores pairs of texts and translations with it.

    Args:
        model: name of the model that is meant; "": any.
        source: BCP-47 code of the language of the texts; "": any.
        target: of the language of the translations; "": any.

    Raises:
        DragomanError: no one model is meant, a bundle cannot be read, or a setting is impossible.
    """
    settings = read_settings()
    bundle = _chosen(models, model, source, target)
    manifest = bundle.manifest
    translator = Translator(manifest, bundle.tokenizer())
    engine = _engine(bundle, settings)
    source, target = manifest.languages.told(source, target)
    options = RequestOptions(decoding=SCORING, source_language=source, target_language=target)

    def score(pairs: Sequence[tuple[str, str]]) -> list[Score]:
        results = translator.score_offline(engine, [Pair(*pair) for pair in pairs], options)
        return [_score(result, manifest) for result in results]

    return score


def _languages(manifests: Iterable[Manifest]) -> set[str]:
    return {code for each in manifests for code in (*each.source_languages, *each.target_languages)}


def read_settings(models: Models = None) -> Settings:
    """Read the settings from the environment, but for the models where they are given.

    Raises:
        SettingsError: one is unknown or impossible.
    """
    return load({"models": models} if models else {}, other_variables={access.API_KEY_VARIABLE, ADDRESS_VARIABLE})


def _chosen(models: Models, model: str, source: str, target: str) -> Bundle:
    """Open the bundle that is meant."""
    bundles = manifests(models)
    check_names(dict(bundles))
    manifest = choose([manifest for _, manifest in bundles], model, source, target)
    return Bundle.open(next(path for path, other in bundles if other is manifest))


def _engine(bundle: Bundle, settings: Settings) -> "OfflineEngine":
    from service.engine.offline import OfflineEngine

    slots = capacity.slots_of(bundle.manifest, settings)
    return OfflineEngine(
        bundle,
        device=settings.device,
        threads=settings.decoding_threads(),
        slots=slots,
        shortlist=settings.shortlists,
    )


def _score(result: TextResult | DragomanError, manifest: Manifest) -> Score:
    if isinstance(result, DragomanError):
        return Score(manifest.name, 0.0, 0.0, (), 0, 0, error=result)
    assert result.mean_log_probability is not None, "it was asked for"
    return Score(
        model=manifest.name,
        log_probability=result.log_probability,
        mean_log_probability=result.mean_log_probability,
        tokens=tuple(TokenScore(*token) for token in result.token_scores),
        source_tokens=result.source_tokens,
        target_tokens=result.target_tokens,
    )


def _translation(result: TextResult, manifest: Manifest, beam_size: int, seed: int | None) -> Translation:
    return Translation(
        text=result.text,
        model=manifest.name,
        source_tokens=result.source_tokens,
        target_tokens=result.target_tokens,
        finish_reason=result.finish_reason.name,
        segments=result.segments,
        unknown_pieces=result.unknown_pieces,
        split=result.split,
        alternatives=tuple(
            Alternative(each.text, each.score, each.mean_log_probability, each.finish_reason.name)
            for each in result.alternatives
        ),
        beam_size=beam_size,
        seed=seed,
        alignments=tuple(WordAlignment(*link.source, *link.target, link.weight) for link in result.alignments),
        glossary_misses=tuple(result.glossary_misses),
        quality_estimate=result.quality_estimate,
        segment_qualities=tuple(SegmentQuality(*each) for each in result.segment_qualities),
    )
