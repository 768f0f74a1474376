"""The meaning of a model name: bundles on disk, or a model that an import turns into a bundle."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from dragoman.bundle import MANIFEST, find_bundles
from dragoman.errors import DataError
from dragoman.spelling import did_you_mean

FIREFOX: Final = "firefox:"
OPUS: Final = "Helsinki-NLP"  # the hub's owner of the OPUS-MT models
ALL: Final = "all"
# Files that identify a model that is no bundle; for other models, config.json is read.
_OF_OTHERS: Final = ("*.npz", "*.bin", "decoder.yml", "model/model.bin")
_CONFIG: Final = "config.json"
_HUB_NAME: Final = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
_PAIR: Final = re.compile(r"^[a-z]{2,3}(_[a-z]{2,8})?-[a-z]{2,3}(_[a-z]{2,8})?$")

Kind = Literal["bundles", "folder", "hub", "firefox"]


class Name(NamedTuple):
    """The meaning of one name.

    Attributes:
        kind: bundles: a bundle or a folder with bundles; folder: a local model that can be imported; hub and firefox:
            the source of a download.
        value: the folder, the name on the hub, or for Firefox the pair or "all".
    """

    kind: Kind
    value: str

    def __str__(self) -> str:
        return FIREFOX + self.value if self.kind == "firefox" else self.value


ALL_OF_FIREFOX: Final = Name("firefox", ALL)


def parse(words: Iterable[str]) -> list[Name]:
    """Parse names, without duplicates; a pair of languages after a Firefox name is a Firefox pair too.

    Raises:
        DataError: a name is invalid.
    """
    names: list[Name] = []
    for word in words:
        follows = bool(names) and names[-1].kind == "firefox" and _PAIR.fullmatch(word)
        names.append(_firefox(word.removeprefix(FIREFOX)) if follows or word.startswith(FIREFOX) else _other(word))
    return list(dict.fromkeys(names))


def is_of_hub(word: str) -> bool:
    """Tell whether a word has the form of a name on the hub."""
    return bool(_HUB_NAME.fullmatch(word))


def _firefox(pair: str) -> Name:
    if pair != ALL and not _PAIR.fullmatch(pair):
        raise DataError(
            f"{FIREFOX}{pair}: must be {FIREFOX}SOURCE-TARGET in small letters, such as {FIREFOX}en-de, or "
            f"{FIREFOX}{ALL}"
        )
    return Name("firefox", pair)


def _other(word: str) -> Name:
    folder = Path(word)
    if folder.is_dir():
        is_importable = _is_importable(folder) and not find_bundles(folder)
        return Name("folder", str(folder.resolve())) if is_importable else Name("bundles", word)
    if folder.exists():
        raise not_a_folder(folder)
    if is_of_hub(word):
        return Name("hub", word)
    if _PAIR.fullmatch(word):
        raise DataError(f"{word}: no such folder; did you mean {FIREFOX}{word}?")
    if hint := meant(word):
        raise DataError(f"{word}: no such folder{hint}")
    return Name("bundles", word)


def not_a_folder(file: Path) -> DataError:
    """Make the error for a file that is given in place of a folder."""
    if file.parent == Path() and not (Path(MANIFEST).exists() or _is_importable(Path())):
        return DataError(f"{file}: is a file; a model is a folder")
    return DataError(f"{file}: is a file; give its folder, {file.parent}")


def meant(word: str) -> str:
    """Suggest a name similar to a word that is no folder, for the end of a message; "" if there is none."""
    kind, colon, rest = word.partition(":")
    if colon and did_you_mean(f"{kind}:", [FIREFOX]):
        return f"; did you mean {FIREFOX}{rest}?"
    if word.startswith("opus-mt-"):
        return f"; did you mean {OPUS}/{word}?"
    folder = Path(word)
    beside = [str(each) for each in folder.parent.glob("*/")] if folder.parent.is_dir() else []
    return did_you_mean(str(folder), beside, str(folder).removesuffix(folder.name))


def _is_importable(folder: Path) -> bool:
    """Tell whether a folder holds a foreign model: not our own checkpoint, whose config.json has no model type."""
    config = folder / _CONFIG
    if config.is_file():
        return b'"model_type"' in config.read_bytes() or (folder / "model.bin").is_file()
    return any(file.is_file() for pattern in _OF_OTHERS for file in folder.glob(pattern))
