"""The model to import: a local folder, or a download from the hub or from Firefox, with its origin."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dragoman.access import API_KEY_VARIABLE
from dragoman.channel import ADDRESS_VARIABLE
from dragoman.errors import DataError
from plugins.library import firefox
from plugins.library.firefox import FirefoxModels
from plugins.library.names import ALL, FIREFOX, is_of_hub, meant, not_a_folder, parse
from plugins.library.store import Store
from service import settings

CARD: Final = "README.md"
LICENCES: Final = (CARD, "LICENSE*", "LICENCE*", "NOTICE*")
_FILES: Final = ("*.json", "*.spm", "*.model", *LICENCES)

Report = Callable[[str], None]


class Fetched(NamedTuple):
    """A model in a local folder.

    Attributes:
        folder: the folder with its files.
        name: the name of the model; "": that of the folder.
        origin: for the record of the import: the licence, and for a download the revision.
        is_spare: whether the folder is useless once the model is imported.
    """

    folder: Path
    name: str
    origin: Mapping[str, str]
    is_spare: bool = False


def fetch(source: str, report: Report) -> Fetched:
    """Find the local folder of a model, or download the model.

    Args:
        source: a folder, a name on the hub, or one of Firefox.
        report: gets a message before each slow step.

    Raises:
        DataError: no model has this name, or the download failed.
        OSError: a file cannot be written.
    """
    if source.startswith(FIREFOX):
        return _of_firefox(source, report)
    folder = Path(source)
    if folder.is_file():
        raise not_a_folder(folder)
    if folder.exists():
        return Fetched(folder, "", {"licence": _licence(folder)})
    if not is_of_hub(source):
        raise DataError(f"{source}: no such folder{meant(source)}")
    report(f"no folder {source} here; fetching it from the hub")
    folder, revision = _of_hub(source)
    return Fetched(folder, source.rsplit("/", 1)[-1], {"revision": revision, "licence": _licence(folder)})


def _of_firefox(source: str, report: Report) -> Fetched:
    from filelock import FileLock

    [name] = parse([source])
    if name.value == ALL:
        raise DataError(f"{source}: an import makes one model; name a pair, such as {FIREFOX}en-de")
    url = settings.load(other_variables={API_KEY_VARIABLE, ADDRESS_VARIABLE}).firefox_models
    models = FirefoxModels.read(url)
    model = models.model(name.value)
    folder = Store().root / "downloads" / "firefox" / name.value / model.revision[:12]
    folder.mkdir(parents=True, exist_ok=True)
    report(f"fetching {source}")
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        models.fetch(model, folder)
    origin = {"revision": model.revision, "licence": firefox.LICENCE}
    return Fetched(folder, f"firefox-{name.value}", origin, is_spare=True)


def _of_hub(name: str) -> tuple[Path, str]:
    """Download a model from the hub, unless it is in the hub's cache folder; returns its folder and commit."""
    from huggingface_hub import HfApi, get_session, snapshot_download
    from huggingface_hub.constants import HF_HUB_ETAG_TIMEOUT
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()
    hub = HfApi()
    try:
        get_session().timeout = HF_HUB_ETAG_TIMEOUT  # the session has no timeout by default
        info = hub.model_info(name, timeout=HF_HUB_ETAG_TIMEOUT)
        files = [file.rfilename for file in info.siblings or ()]
        weights = "*.safetensors" if any(file.endswith(".safetensors") for file in files) else "*.bin"
        revision = info.sha or ""
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=[*_FILES, weights]))
        _drop_damaged(folder, hub.verify_repo_checksums(name, revision=revision).mismatches)
    except HFValidationError as error:
        raise DataError(f"{name}: {error}") from error
    except GatedRepoError as error:
        raise DataError(
            f"{name}: its owner wants terms accepted: do so on its page, and set HF_TOKEN to a token of yours"
        ) from error
    except RepositoryNotFoundError as error:
        raise DataError(f"{name}: no such folder, and no such model on the hub") from error
    except HfHubHTTPError as error:
        raise DataError(f"{name}: the hub refuses it: {str(error).splitlines()[0]:.200}") from error
    except DataError:
        raise
    except Exception as error:  # an error of the HTTP library, which depends on the hub's version
        if isinstance(error, OSError) and error.errno:  # an error of the disk
            raise
        raise DataError(
            f"{name}: no such folder, and the hub ({hub.endpoint}) cannot be reached: {type(error).__name__}"
        ) from error
    return folder, revision


def _drop_damaged(folder: Path, mismatches: list[Any]) -> None:
    """Remove files that differ from those of the hub; raises DataError if there are any."""
    for mismatch in mismatches:
        (folder / mismatch["path"]).resolve().unlink()
    for file in mismatches:
        raise DataError(
            f"{file['path']}: {file['algorithm']} is {file['actual']}, the hub says {file['expected']}; it was "
            "removed, try again"
        )


def _licence(folder: Path) -> str:
    """Read the licence from the card of a model; "" if it names none."""
    if not (folder / CARD).is_file():
        return ""
    from huggingface_hub import ModelCard

    text = (folder / CARD).read_text(encoding="utf-8", errors="replace")
    try:
        data = ModelCard(text, ignore_metadata_errors=True).data
    except Exception:  # bad metadata must not prevent the import
        return ""
    return str(data.get("license_name") or data.get("license") or "")
