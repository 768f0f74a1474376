"""What a checkpoint consists of, by the names of its files, and what it says of itself; needs no torch."""

import json
from pathlib import Path
from typing import Final

from dragoman.errors import DataError
from dragoman.language import RULE, is_code

CONFIG: Final = "config.json"
TRAINING: Final = "training.json"
PARITY: Final = "parity.tsv"
PARITY_PAIRS: Final = 500


def is_checkpoint(folder: Path) -> bool:
    """Tell whether a folder is meant to be a checkpoint."""
    return (folder / CONFIG).is_file()


def languages(checkpoint: Path) -> tuple[str, str]:
    """Read the languages that a model was trained for: the source and the target, "" where they were not recorded.

    Raises:
        DataError: the record cannot be read, or holds something else.
    """
    file = checkpoint / TRAINING
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
