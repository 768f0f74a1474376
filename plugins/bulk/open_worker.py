"""The worker of `dragoman bulk`, opened in any process: with its own engine, or as a client of servers."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from dragoman.access import Access
from dragoman.answers import Model, Translation
from dragoman.bundle import Manifest
from dragoman.commands import model_source
from dragoman.commands.lines import CALL_TIMEOUT_S, in_calls
from dragoman.commands.translations import untranslated
from dragoman.errors import BundleError
from plugins.bulk.columns import Columns
from plugins.bulk.worker import TranslateTexts, Worker
from plugins.offline import in_process
from plugins.offline.in_process import Models
from service.calls.limits import bad_texts

TARGET: Final = f"{__name__}:open_worker"


def identity_of(model: Manifest | Model) -> dict[str, str]:
    """Identify the model of a bundle or a server by the properties that its translations depend on."""
    checkpoint = model.provenance if isinstance(model, Manifest) else model
    return {
        "name": model.name,
        "checkpoint_sha256": checkpoint.checkpoint_sha256,
        "precision": model.precision,
    }


def open_worker(
    *,
    out: Path,
    id_column: str,
    text_column: str,
    identity: Mapping[str, str],
    source: str,
    target: str,
    models: Models,
    address: str | None,
    let_in: Access,
) -> Worker:
    """Open a worker.

    Args:
        source: BCP-47 code of the source language; "": the model's own.
        target: BCP-47 code of the target language; "": the model's own.
        models: as for `in_process.manifests`.
        address: the address of the servers; None: the engine runs in this process.
        let_in: the access to the servers.

    Raises:
        DragomanError: the model here is another one, or cannot be loaded.
    """
    if address is None:
        translate = _in_process(models, identity, source, target)
    else:
        translate = partial(_by_servers, address, let_in, identity, source, target)
    return Worker(translate, out, Columns(id_column, text_column), identity["checkpoint_sha256"])


def _in_process(models: Models, identity: Mapping[str, str], source: str, target: str) -> TranslateTexts:
    """Load the model."""
    manifests = [manifest for _, manifest in in_process.manifests(models)]
    _check(model_source.choose(manifests, identity["name"], source, target), identity)
    settings = in_process.read_settings()
    translate = in_process.translator(models, model=identity["name"], source=source, target=target, html=False)

    def translated(texts: list[str]) -> list[Translation]:
        bad = bad_texts(enumerate(texts), settings)  # refused as by a server
        good = iter(in_calls(translate, [text for place, text in enumerate(texts) if place not in bad], untranslated))
        return [untranslated(bad[place]) if place in bad else next(good) for place in range(len(texts))]

    return translated


def _by_servers(
    address: str, let_in: Access, identity: Mapping[str, str], source: str, target: str, texts: list[str]
) -> list[Translation]:
    """Translate texts on servers, and check before and after that they have the model of the job."""

    def translated(part: list[str]) -> list[Translation]:
        answers = client.translate_many(
            part, model=identity["name"], source_language=source, target_language=target, priority="bulk"
        )
        return [_lasting(answer.translation) for answer in answers]

    with model_source.connected(address, let_in, CALL_TIMEOUT_S) as client:
        served = partial(model_source.served, client, address)
        _check(model_source.choose(served(), identity["name"], source, target), identity)
        translations = in_calls(translated, texts, untranslated)
        _check(model_source.choose(served(), identity["name"], source, target), identity)
    return translations


def _lasting(translation: Translation) -> Translation:
    """Give a translation, or one with a permanent error.

    Raises:
        DragomanError: the text may be translated later, or by another server.
    """
    if translation.error is not None and translation.error.retryable:
        raise translation.error
    return translation


def _check(model: Manifest | Model, identity: Mapping[str, str]) -> None:
    """Check that a model is that of the job.

    Raises:
        BundleError: the model is another one.
    """
    if (found := identity_of(model)) != identity:
        raise BundleError(f"model {model.name} is now {_shown(found)}; that of the job is {_shown(identity)}")


def _shown(identity: Mapping[str, str]) -> str:
    return f"of checkpoint {identity['checkpoint_sha256'][:12]} in {identity['precision']}"
