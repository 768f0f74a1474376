"""What `dragoman translate` and `dragoman models` do without a server: read bundles, and translate with one of them."""

import os
from collections.abc import Callable
from pathlib import Path

from dragoman import access
from dragoman.answers import Translation
from dragoman.bundle import Bundle, Manifest, find_bundles, no_bundles
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.commands.model_source import choose
from service.options import RequestOptions
from service.registry import capacity
from service.settings import DEFAULT_MODELS, PREFIX, load
from service.text.translator import Limits, Translator


def manifests(folder: Path | None) -> list[tuple[Path, Manifest]]:
    """List bundles with their manifests, by the names of the models.

    Args:
        folder: a bundle, or a folder with bundles; None: that of the environment, else the models of the server.

    Raises:
        BundleError: there is none, or a manifest cannot be read.
    """
    folder = folder or Path(os.environ.get(f"{PREFIX}MODELS") or DEFAULT_MODELS)
    found = [(path, Manifest.read(path)) for path in find_bundles(folder)]
    if not found:
        raise no_bundles(folder)
    return sorted(found, key=lambda bundle: bundle[1].name)


def translator(
    folder: Path | None, *, model: str, source: str, target: str, html: bool
) -> Callable[[list[str]], list[Translation]]:
    """Load a model, and give the function that translates texts with it.

    Args:
        folder: where bundles are, as for `manifests`.
        model: name of the model that is meant; "": any.
        source: BCP-47 code of the language to translate from; "": any.
        target: of the language to translate into; "": any.
        html: whether the texts are HTML.

    Raises:
        DragomanError: no one model is meant, a bundle cannot be read, or a setting is impossible.
    """
    settings = load(other_variables={access.API_KEY_VARIABLE, ADDRESS_VARIABLE})
    bundles = manifests(folder)
    manifest = choose([manifest for _, manifest in bundles], model, source, target)
    bundle = Bundle.open(next(path for path, other in bundles if other is manifest))
    from service.engine.offline import OfflineEngine

    slots = capacity.slots_of(manifest, settings)
    engine = OfflineEngine(bundle, device=settings.device, threads=settings.decoding_threads(), slots=slots)
    translator = Translator(manifest, bundle.tokenizer(), Limits.of(settings))
    source, target = manifest.languages.told(source, target)
    options = RequestOptions(source_language=source, target_language=target, html=html)

    def translate(texts: list[str]) -> list[Translation]:
        return [
            Translation(
                text=result.text,
                model=manifest.name,
                source_tokens=result.source_tokens,
                target_tokens=result.target_tokens,
                finish_reason=result.finish_reason.name,
                segments=result.segments,
            )
            for result in translator.translate_offline(engine, texts, options)
        ]

    return translate
