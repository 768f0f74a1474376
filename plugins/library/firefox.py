"""The models of Firefox: Mozilla's list of models, and the files of a model as Firefox distributes them."""

from pathlib import Path, PurePosixPath
from typing import Final, Self

from pydantic import BaseModel, ValidationError

from dragoman.errors import DataError
from dragoman.invalid import describe
from dragoman.language import several
from plugins.library.download import fetch, read, unpack

LICENCE: Final = "MPL-2.0"
PIVOT: Final = "en"  # the intermediate language of Firefox if no model has both languages
_RELEASE: Final = "release"
_PACKED: Final = ".gz"


class _File(BaseModel):
    path: str
    uncompressedHash: str = ""  # noqa: N815 - as in the list
    uncompressedSize: int = 0  # noqa: N815


class FirefoxModel(BaseModel):
    """One model of the list."""

    releaseStatus: str = ""  # noqa: N815
    files: dict[str, _File]

    @property
    def rank(self) -> tuple[bool, int]:
        """The rank of a model, higher is better: released models first, then larger ones."""
        return self.releaseStatus.lower().startswith(_RELEASE), self.files["model"].uncompressedSize

    @property
    def revision(self) -> str:
        """The hash of the model's weights."""
        return self.files["model"].uncompressedHash


class FirefoxModels(BaseModel):
    """The list: for each pair of languages, such as en-de, all of its models."""

    baseUrl: str  # noqa: N815
    models: dict[str, list[FirefoxModel]]

    @classmethod
    def read(cls, url: str) -> Self:
        """Fetch the list.

        Raises:
            DataError: the download failed, or is no such list.
        """
        try:
            return cls.model_validate_json(read(url))
        except DataError as error:
            raise DataError(f"no list of Firefox's models: {error}") from error
        except ValidationError as error:
            raise DataError(f"{url}: is no list of Firefox's models: {describe(error)}") from error

    @property
    def pairs(self) -> list[str]:
        """All pairs with a model, sorted by name."""
        return sorted(pair for pair, models in self.models.items() if models)

    def ways(self, pair: str) -> list[str]:
        """Give the pairs whose models together translate a pair: the pair itself, or two pairs with English.

        Raises:
            DataError: there are no such models.
        """
        for way in ([pair], over_pivot(pair)):
            if way and set(way) <= set(self.pairs):
                return way
        raise DataError(f"firefox:{pair}: there is no such model, and none over {PIVOT}{self._instead(pair)}")

    def model(self, pair: str) -> FirefoxModel:
        """Find the best model of a pair.

        Raises:
            DataError: there is no model, or its entry names no file of weights with a hash.
        """
        if pair not in self.pairs:
            raise DataError(f"firefox:{pair}: there is no such model{self._instead(pair)}")
        whole = [model for model in self.models[pair] if "model" in model.files and model.revision]
        if not whole:
            raise DataError(f"firefox:{pair}: the list gives no hash of its weights")
        return max(whole, key=lambda model: model.rank)

    def _instead(self, pair: str) -> str:
        """Suggest other pairs, for the end of a message."""
        source, target = pair.split("-")
        near = [each for each in self.pairs if each.startswith(f"{source}-") or each.endswith(f"-{target}")]
        swapped = [each for each in self.pairs if _letters(each) == _letters(pair)]
        hint = f"; did you mean firefox:{swapped[0]}?" if swapped else ""
        return hint or f"; there are: {several(near or self.pairs)}"

    def fetch(self, model: FirefoxModel, folder: Path) -> None:
        """Fetch the files of a model, under the names that they have in Firefox.

        Args:
            model: a model of this list.
            folder: the target folder; files that an earlier try left there are not downloaded again.

        Raises:
            DataError: a download failed, or a file differs from the list.
            OSError: a file cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for file in model.files.values():
            packed = folder / PurePosixPath(file.path).name
            out = folder / packed.name.removesuffix(_PACKED)
            if not out.exists():
                fetch(f"{self.baseUrl.rstrip('/')}/{file.path}", packed)
                _unpack(packed, out, file.uncompressedHash)


def over_pivot(pair: str) -> list[str]:
    """Give the two pairs with English as the intermediate language; none if English is one of the languages."""
    source, target = pair.split("-")
    return [] if PIVOT in (source, target) else [f"{source}-{PIVOT}", f"{PIVOT}-{target}"]


def _letters(pair: str) -> list[list[str]]:
    """Give the sorted letters of each language, to find misspelt pairs."""
    return [sorted(code) for code in pair.split("-")]


def _unpack(packed: Path, out: Path, expected: str) -> None:
    """Unpack a file into its place, if its hash is the expected one; "": any hash."""
    part = out.with_name(out.name + ".unpacked")
    try:
        digest = unpack(packed, part)
        if expected and digest != expected:
            raise DataError(f"{out.name}: sha256 is {digest}, the list says {expected}")
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
        packed.unlink()  # else a damaged file would be used by every later try
