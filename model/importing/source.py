"""The folder to import: its JSON files, its weights files, and their hashes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, Final

import yaml

from dragoman.bundle import sha256
from dragoman.errors import DataError
from model.importing.formats import other_format

CONFIG: Final = "config.json"
MARIAN_NPZ: Final = "marian.npz"  # used like a `model_type`
MARIAN_BIN: Final = "marian.bin"  # used like a `model_type`
GENERATION: Final = "generation_config.json"
SAFETENSORS: Final = "model.safetensors"
SAFETENSORS_INDEX: Final = "model.safetensors.index.json"
TORCH: Final = "pytorch_model.bin"
CT2_MODEL: Final = "model.bin"
DECODER: Final = "decoder.yml"  # of Marian's own format: names the files of the model and the vocabularies
# The weights of a Firefox model, which no other file names.
MARIAN_BIN_FILES: Final = "model.*.bin"
_JOINT_VOCABULARY: Final = "vocab.*.spm"
_VOCABULARIES: Final = ("srcvocab.*.spm", "trgvocab.*.spm")
_SHORTLISTS: Final = "lex*.s2t.bin"
_ARGOS: Final = "model/"  # where an Argos package contains its model
_NO_MODEL: Final = (
    f"no model is known by its files: no {CONFIG} (Hugging Face), {DECODER} (Marian) or {MARIAN_BIN_FILES} (Firefox)"
)
TORCH_INDEX: Final = "pytorch_model.bin.index.json"


@dataclass(frozen=True)
class Source:
    """A folder in the format of Hugging Face, CTranslate2, Marian or Firefox.

    Attributes:
        folder: the path of the folder.
        name: the name of the model, such as opus-mt-en-de; for Firefox its file, such as model.ende.intgemm.alphas.bin.
        config: the content of config.json.
        generation: the content of generation_config.json; None: it does not exist, and config.json has its settings.
        used: the names of the files that were read, for the record of the import.
        base: the subfolder of the model, with a slash at its end; "": the folder itself.
    """

    folder: Path
    name: str
    config: dict[str, Any]
    generation: dict[str, Any] | None
    used: set[str] = field(default_factory=set)
    base: str = ""

    @classmethod
    def open(cls, folder: Path, name: str = "") -> "Source":
        """Read the two settings files.

        Args:
            folder: the path of the folder.
            name: the name of the model; "": the name of the folder.

        Raises:
            DataError: the folder does not exist, or has no config.json with a JSON object. CTranslate2, Marian and
                Firefox need none: there, model.bin, decoder.yml and model.*.bin identify the format.
        """
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder")
        for base in ("", _ARGOS):
            if (folder / base / CT2_MODEL).is_file():
                source = cls(folder, name or folder.resolve().name, {}, None, base=base)
                config = source.json(base + CONFIG) | {"model_type": "ctranslate2"}
                return cls(folder, source.name, config, None, source.used, base)
        if (folder / DECODER).is_file() and not (folder / CONFIG).is_file():
            return cls(folder, name or folder.resolve().name, {"model_type": MARIAN_NPZ}, None)
        if not (folder / CONFIG).is_file() and any(folder.glob(MARIAN_BIN_FILES)):
            source = cls(folder, "", {"model_type": MARIAN_BIN}, None)
            return replace(source, name=source.found(MARIAN_BIN_FILES))
        if not (folder / CONFIG).is_file():
            other = other_format(folder)
            raise DataError(f"{folder}: {other or _NO_MODEL}")
        source = cls(folder, name or folder.resolve().name, {}, {})
        generation = source.json(GENERATION) if source.has(GENERATION) else None
        return cls(folder, source.name, source.json(CONFIG), generation, source.used)

    def has(self, name: str) -> bool:
        """Tell whether a file of this name exists."""
        return (self.folder / name).is_file()

    def bytes(self, name: str) -> bytes:
        """Read a file.

        Raises:
            DataError: the file cannot be read.
        """
        self.used.add(name)
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            raise DataError(f"{self.folder / name}: cannot read: {error.strerror}") from error

    def json(self, name: str) -> dict[str, Any]:
        """Read a file with a JSON object; {} if the file does not exist.

        Raises:
            DataError: the content is no JSON object.
        """
        if not self.has(name):
            return {}
        try:
            content = json.loads(self.bytes(name))
        except ValueError as error:
            raise DataError(f"{self.folder / name}: no JSON: {error}") from error
        if not isinstance(content, dict):
            raise DataError(f"{self.folder / name}: must hold a JSON object")
        return content

    def yaml(self, name: str) -> dict[str, Any]:
        """Read a file with a YAML mapping; all scalars stay strings.

        Raises:
            DataError: the file is missing, or is no YAML mapping.
        """
        try:
            content = yaml.load(self.bytes(name).decode(), Loader=yaml.CBaseLoader)
        except (ValueError, yaml.YAMLError) as error:
            raise DataError(f"{self.folder / name}: no YAML: {' '.join(str(error).split())}") from error
        if not isinstance(content, dict):
            raise DataError(f"{self.folder / name}: must hold a YAML mapping")
        return content

    def named(self, key: str) -> list[str]:
        """List the files that decoder.yml names under a key, without the folders of the training machine.

        For Firefox, the files are found by patterns.

        Raises:
            DataError: no file is named, or no file is found.
        """
        if self.config["model_type"] == MARIAN_BIN:
            if key == "models":
                return [self.found(MARIAN_BIN_FILES)]
            apart = any(any(self.folder.glob(pattern)) for pattern in _VOCABULARIES)
            return [self.found(pattern) for pattern in (_VOCABULARIES if apart else [_JOINT_VOCABULARY] * 2)]
        names = self.yaml(DECODER).get(key)
        if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
            raise DataError(f"{self.folder / DECODER}: {key} must be a list of files")
        return [PurePath(name).name for name in names]

    def found(self, pattern: str) -> str:
        """Find the one file that matches a pattern.

        Raises:
            DataError: no file or several files match.
        """
        names = sorted(file.name for file in self.folder.glob(pattern))
        if len(names) != 1:
            several = f"{len(names)} files {pattern}: {', '.join(names)}; put each model into a folder of its own"
            raise DataError(f"{self.folder}: {several if names else f'no {pattern}, which belongs to the model'}")
        return names[0]

    def shortlist(self) -> str | None:
        """Find the file with the possible target pieces of each source piece, if the folder has one.

        Raises:
            DataError: there are several such files.
        """
        return self.found(_SHORTLISTS) if any(self.folder.glob(_SHORTLISTS)) else None

    def weight_files(self) -> list[Path]:
        """Find the weights files; of several formats, the one that cannot contain a program.

        Raises:
            DataError: there are none, or a file of the index is missing.
        """
        if self.has(self.base + CT2_MODEL):
            self.used.add(self.base + CT2_MODEL)
            return [self.folder / self.base / CT2_MODEL]
        if self.config.get("model_type") in (MARIAN_NPZ, MARIAN_BIN):
            names = self.named("models")
            if len(names) > 1:
                raise DataError(f"{self.folder / DECODER}: names {len(names)} models; an ensemble is not supported")
            if not self.has(names[0]):
                raise DataError(f"{self.folder}: no {names[0]}, which {DECODER} names")
            self.used.add(names[0])
            return [self.folder / names[0]]
        for single, index in ((SAFETENSORS, SAFETENSORS_INDEX), (TORCH, TORCH_INDEX)):
            if self.has(single):
                parts = {single}
            elif self.has(index):
                weight_map = self.json(index).get("weight_map")
                if not (isinstance(weight_map, dict) and weight_map):
                    raise DataError(f"{self.folder / index}: weight_map must name the file of each weight")
                parts = set(map(str, weight_map.values()))
            else:
                continue
            if missing := sorted(name for name in parts if Path(name).name != name or not self.has(name)):
                raise DataError(f"{self.folder}: no {missing[0]}, which {index} names")
            self.used.update(parts)
            return [self.folder / name for name in sorted(parts)]
        raise DataError(f"{self.folder}: no {SAFETENSORS}, and no {TORCH}")

    def hashes(self) -> Iterator[tuple[str, str]]:
        """Compute the SHA-256 of each file that was read, by name."""
        for name in sorted(self.used):
            yield name, sha256(self.folder / name)
