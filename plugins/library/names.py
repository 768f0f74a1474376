"""What a name of models means: bundles on disk, or a model that becomes a bundle when it is imported."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from dragoman.bundle import MANIFEST, find_bundles
from dragoman.errors import DataError
from dragoman.spelling import did_you_mean

FIREFOX: Final = "firefox:"
OPUS: Final = "Helsinki-NLP"  # whose the models of OPUS-MT are on the hub
ALL: Final = "all"
# Files of a model that is no bundle; a config.json says more.
_OF_OTHERS: Final = ("*.npz", "*.bin", "decoder.yml", "model/model.bin")
_CONFIG: Final = "config.json"
_HUB_NAME: Final = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$")
_PAIR: Final = re.compile(r"^[a-z]{2,3}(_[a-z]{2,8})?-[a-z]{2,3}(_[a-z]{2,8})?$")

Kind = Literal["bundles", "folder", "hub", "firefox"]


class Name(NamedTuple):
    """What one name means.

    Attributes:
        kind: bundles: a bundle or a folder with bundles; folder: of a model that can be imported; hub and firefox: from
            where it is fetched.
        value: the folder, the name on the hub, or of Firefox the pair or "all".
    """

    kind: Kind
    value: str

    def __str__(self) -> str:
        return FIREFOX + self.value if self.kind == "firefox" else self.value


ALL_OF_FIREFOX: Final = Name("firefox", ALL)


def parse(words: Iterable[str]) -> list[Name]:
    """Read names, each once; a pair of languages behind a name of Firefox belongs to that.

    Raises:
        DataError: one means nothing.
    """
    names: list[Name] = []
    for word in words:
        follows = bool(names) and names[-1].kind == "firefox" and _PAIR.fullmatch(word)
        names.append(_firefox(word.removeprefix(FIREFOX)) if follows or word.startswith(FIREFOX) else _other(word))
    return list(dict.fromkeys(names))


def is_of_hub(word: str) -> bool:
    """Tell whether a word may be a name on the hub."""
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
    """Make the error of a file in the place of a folder."""
    if file.parent == Path() and not (Path(MANIFEST).exists() or _is_importable(Path())):
        return DataError(f"{file}: is a file; a model is a folder")
    return DataError(f"{file}: is a file; give its folder, {file.parent}")


def meant(word: str) -> str:
    """Ask for a name like a word that is no folder, to be put behind a message; "" where there is none."""
    kind, colon, rest = word.partition(":")
    if colon and did_you_mean(f"{kind}:", [FIREFOX]):
        return f"; did you mean {FIREFOX}{rest}?"
    if word.startswith("opus-mt-"):
        return f"; did you mean {OPUS}/{word}?"
    folder = Path(word)
    beside = [str(each) for each in folder.parent.glob("*/")] if folder.parent.is_dir() else []
    return did_you_mean(str(folder), beside, str(folder).removesuffix(folder.name))


def _is_importable(folder: Path) -> bool:
    """Tell a model of others from a checkpoint of our own, whose config.json names no type, and from any folder."""
    config = folder / _CONFIG
    if config.is_file():
        return b'"model_type"' in config.read_bytes() or (folder / "model.bin").is_file()
    return any(file.is_file() for pattern in _OF_OTHERS for file in folder.glob(pattern))
