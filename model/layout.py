"""The files of a checkpoint, and its records of languages and family; needs no torch."""

import json
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from dragoman.bundle import FAMILY
from dragoman.errors import DataError
from dragoman.files import read_regular
from dragoman.invalid import describe
from dragoman.language import RULE, is_code
from dragoman.language_marks import Languages

CONFIG: Final = "config.json"
WEIGHTS: Final = "model.safetensors"
LANGUAGES: Final = "languages.json"
IMPORT: Final = "import.json"
TRAINING: Final = "training.json"
PARITY: Final = "parity.tsv"
PARITY_PAIRS: Final = 500


def is_checkpoint(folder: Path) -> bool:
    """Tell whether a folder has the form of a checkpoint."""
    return (folder / CONFIG).is_file()


def languages(checkpoint: Path) -> Languages | None:
    """Read a model's languages: as imported, or as recorded by `dragoman train`; None if they were not recorded.

    Raises:
        DataError: the record is unreadable or invalid.
    """
    file = checkpoint / LANGUAGES
    try:
        return Languages.model_validate_json(read_regular(file))
    except FileNotFoundError:
        source, target = _trained_languages(checkpoint / TRAINING)
    except OSError as error:
        raise DataError(f"{file}: cannot read: {error.strerror}") from error
    except ValidationError as error:
        raise DataError(f"{file}: {describe(error)}") from error
    return Languages.pair(source, target) if source and target else None


def family(checkpoint: Path) -> str:
    """Name the family of an imported model, such as "marian"; `FAMILY` for a model trained with this project.

    Raises:
        DataError: the record of the import is unreadable.
    """
    file = checkpoint / IMPORT
    try:
        return str(json.loads(file.read_bytes())["family"])
    except FileNotFoundError:
        return FAMILY
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{file}: no record of an import: {type(error).__name__}") from error


def _trained_languages(file: Path) -> tuple[str, str]:
    """Read the source and the target language of a training; "" if they were not recorded."""
    try:
        options = json.loads(file.read_bytes()).get("options", {})
        codes = [options.get(f"{side}_language", "") for side in ("source", "target")]
    except FileNotFoundError:
        return "", ""
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{file}: no record of a training: {type(error).__name__}") from error
    for code in codes:
        if code and not (isinstance(code, str) and is_code(code)):
            raise DataError(f"{file}: {RULE}, is {code!r:.80}")
    return codes[0], codes[1]
