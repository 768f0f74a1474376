"""The bundle: the folder that export writes and a server loads. The only contract between the two."""

import hashlib
import mmap
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.errors import BundleError
from dragoman.files import FileState, open_regular, read_regular, write_whole
from dragoman.invalid import describe
from dragoman.language_marks import Languages
from dragoman.quality import QualityWeights
from dragoman.tokenizer import Tokenizer, tokenizer_files, tokenizer_names

MANIFEST = "bundle.json"
ENCODER = "encoder.onnx"
DECODER = "decoder.onnx"
PLACE = "place.onnx"
COPY = "copy.onnx"
SEARCH = "search.onnx"
# In bundles with a shortlist: the decoder without its output layer, the output layer, and the shortlist.
STATES_DECODER = "states_decoder.onnx"
OUTPUT_LAYER = "output_layer.onnx"
SHORTLIST = "shortlist.bin"
# The weights of encoder and decoder, each stored once; the graphs hold offsets into this file.
WEIGHTS = "weights.bin"

# Inputs and outputs of the encoder graph ...
SOURCE = "source"
SOURCE_LENGTHS = "source_lengths"
SOURCE_SIZE = "source_size"
MEMORY = "memory"
# ... and of the decoder graph, beside those of `cache_names` and `memory_names`.
IDS = "ids"
LENGTHS = "lengths"
MEMORY_LENGTHS = "memory_lengths"
TARGET_CAPACITY = "target_capacity"
SOURCE_CAPACITY = "source_capacity"
NEXT_IDS = "next_ids"
LOGITS = "logits"
# The decoder without its output layer writes this in place of both; the output layer reads it ...
STATES = "states"
# ... together with the values of the candidate pieces: ids, weights, scales of int8 weights, biases.
CANDIDATES = "candidates"
OUTPUT_WEIGHTS = "output_weights"
OUTPUT_WORTHS = "output_worths"
OUTPUT_BIASES = "output_biases"
# Attention scores of one decoder layer over the source, before the softmax.
ATTENTION_SCORES = "attention_scores"
# Names of the graph that copies encoder memories into the layout of the decoder's inputs `memory_names` ...
PADDING = "padding"
SOURCE_ROWS = "source_rows"
SLOT_ROWS = "slot_rows"
# ... and of the graph that copies bytes.
BYTES = "bytes"
COPIED = "copied"
# Names of the graph that finds the best tokens of each row of `LOGITS`, and log-probabilities of these and others.
COUNT = "count"
ASKED_IDS = "asked_ids"
BEST_IDS = "best_ids"
BEST_LOG_PROBABILITIES = "best_log_probabilities"
ASKED_LOG_PROBABILITIES = "asked_log_probabilities"

NAME_PATTERN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")  # the name of a model
# Bounds on the sizes in a manifest, far above those of real models: memory is reserved by these numbers.
MOST_LAYERS = 1_000
WIDEST = 2**16
MOST_PIECES = 2**24
LONGEST = 2**16

# The formats that can be read, see docs/versions.md. A new field has a default: the meaning of the earlier formats.
OLDEST_FORMAT = 6
FORMAT = 9

Precision = Literal["fp32", "int8", "fp16"]
# How a decoder layer stores the earlier tokens: as keys and values, or as a state of a fixed size.
DecoderCell = Literal["attention", "ssru"]
MAX_NOTE = 200  # characters
FAMILY = "transformer"  # of a model trained with this project; the config.json of an imported model names its family


class Provenance(BaseModel):
    """The origin of a bundle."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint_sha256: str
    versions: dict[str, str] = Field(default_factory=dict)


class AlignmentHeads(BaseModel):
    """The decoder's attention heads that look at the source word being translated.

    Attributes:
        layer: index of the decoder layer, from 0; the decoder graph outputs the scores of all its heads.
        heads: indices of the heads of this layer, from 0; the alignment is the mean over these heads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: int = Field(ge=0, lt=MOST_LAYERS)
    heads: tuple[int, ...] = Field(min_length=1, max_length=WIDEST)


class Manifest(BaseModel):
    """`bundle.json`: all that a server must know before it opens a graph. Lengths are in tokens.

    `stand_ins` are names that the model copies unchanged into its translations; the export has measured this. `note`
    is the purpose of the model in one line. `quality` holds the coefficients of the quality estimate; None: the model
    is not calibrated.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: int = Field(default=FORMAT, strict=True)
    name: str = Field(pattern=NAME_PATTERN.pattern)
    languages: Languages
    family: str = Field(default=FAMILY, min_length=1, max_length=64)
    precision: Precision
    pad_id: int = Field(ge=0, le=MOST_PIECES)
    start_id: int = Field(ge=0, le=MOST_PIECES)
    eos_id: int = Field(ge=0, le=MOST_PIECES)
    unknown_id: int = Field(ge=0, le=MOST_PIECES)
    vocabulary_size: int = Field(gt=0, le=MOST_PIECES)
    d_model: int = Field(gt=0, le=WIDEST)
    heads: int = Field(gt=0, le=WIDEST)
    head_dim: int = Field(gt=0, le=WIDEST)
    encoder_layers: int = Field(gt=0, le=MOST_LAYERS)
    decoder_layers: int = Field(gt=0, le=MOST_LAYERS)
    decoder_cell: DecoderCell = "attention"
    max_source_tokens: int = Field(gt=1, le=LONGEST)
    max_target_tokens: int = Field(gt=1, le=LONGEST)
    alignment: AlignmentHeads
    stand_ins: tuple[str, ...] = ()
    note: str = Field(default="", max_length=MAX_NOTE)
    quality: QualityWeights | None = None
    parameters: int = Field(gt=0, le=2**63 - 1)
    provenance: Provenance
    files: dict[str, str]

    @model_validator(mode="before")
    @classmethod
    def _of_a_format_that_is_read(cls, fields: object) -> object:
        """Refuse another format by its number alone, before its unknown fields are read."""
        version = fields.get("format_version") if isinstance(fields, dict) else None
        if isinstance(version, int) and version < OLDEST_FORMAT:
            cure = "export the model again (dragoman export CHECKPOINT --out BUNDLE)"
            raise ValueError(f"format_version: must be at least {OLDEST_FORMAT}, not {version}: {cure}")
        if isinstance(version, int) and version > FORMAT:
            cure = "install a newer dragoman-server"
            raise ValueError(f"format_version: must be at most {FORMAT}, not {version}: {cure}")
        return fields

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("pad_id", "start_id", "eos_id", "unknown_id"):
            if (number := getattr(self, name)) >= self.vocabulary_size:
                raise ValueError(f"{name} {number} must be below vocabulary_size {self.vocabulary_size}")
        if self.attention_width > WIDEST:
            raise ValueError(f"heads {self.heads} times head_dim {self.head_dim} must be at most {WIDEST}")
        if not self.note.isprintable():
            raise ValueError(f"note: must be one line of characters that can be printed, is {self.note!r}")
        if self.alignment.layer >= self.decoder_layers or not set(self.alignment.heads) <= set(range(self.heads)):
            raise ValueError(f"alignment: there is no such layer or head in {self.alignment}")
        marks, room = self.languages.longest_source_marks, self.max_source_tokens
        if marks + 2 > room:  # at least one token of text, and the end-of-sentence token
            raise ValueError(f"max_source_tokens {room} leave no room for text beside {marks} tokens of languages")
        for name in self.files:
            if Path(name).name != name or name in ("", "..") or "\0" in name:
                raise ValueError(f"files: {name!r} is not a plain file name")
        return self

    @property
    def source_languages(self) -> tuple[str, ...]:
        """BCP-47 codes of the languages that the model translates from."""
        return self.languages.sources

    @property
    def target_languages(self) -> tuple[str, ...]:
        """BCP-47 codes of the languages that the model translates into."""
        return self.languages.targets

    @property
    def target_capacity(self) -> int:
        """Positions of a translation: its own tokens and its forced first tokens."""
        return self.max_target_tokens + self.languages.longest_target_prefix

    @property
    def cached_layers(self) -> int:
        """Number of decoder layers that keep keys and values of the earlier target tokens."""
        return self.decoder_layers if self.decoder_cell == "attention" else 0

    @property
    def state_layers(self) -> int:
        """Number of decoder layers that keep a state of `d_model` numbers in place of keys and values."""
        return self.decoder_layers - self.cached_layers

    @property
    def attention_width(self) -> int:
        """Size of one layer's keys of one position, equal to that of its values; not always `d_model`."""
        return self.heads * self.head_dim

    def write(self, path: Path) -> None:
        """Write the manifest into the bundle's folder, whole or not at all; raises OSError where that fails."""
        write_whole(path / MANIFEST, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read the manifest of a bundle; its files are not checked.

        Raises:
            BundleError: the manifest is missing, of another format or inconsistent.
        """
        file = path / MANIFEST
        try:
            return cls.model_validate_json(read_regular(file))
        except OSError as error:
            raise _unreadable(file, error) from error
        except ValidationError as error:
            raise BundleError(f"{file}: {describe(error)}") from error


@dataclass(frozen=True)
class Bundle:
    """A bundle on disk whose format and hashes were checked.

    Attributes:
        path: its folder.
        manifest: the content of `bundle.json`.
        hashed: the state of each file when its hash was checked or is to be; a file in another state is hashed again.
    """

    path: Path
    manifest: Manifest
    hashed: Mapping[str, FileState] = field(default_factory=dict, compare=False)

    @classmethod
    def open(cls, path: Path) -> "Bundle":
        """Read and check a bundle.

        Raises:
            BundleError: the manifest is missing, of another format or inconsistent, or a file is missing or
                changed; the message says which.
        """
        manifest = Manifest.read(path)
        hashed = {name: _check(path / name, expected) for name, expected in manifest.files.items()}
        _check_entries(path, manifest)
        return cls(path, manifest, hashed)

    @classmethod
    def listed(cls, path: Path) -> "Bundle":
        """Read a bundle; of its files only the names are checked.

        Raises:
            BundleError: the manifest is missing, of another format or inconsistent, or lacks a file.
        """
        manifest = Manifest.read(path)
        _check_entries(path, manifest)
        return cls(path, manifest)

    @classmethod
    @contextmanager
    def opening(cls, path: Path) -> Iterator["Bundle"]:
        """Read a bundle, and check its files on another thread during the block: hashing large files takes time.

        Results that the block makes from the bundle may be used only after the block.

        Raises:
            BundleError: as `open`. A wrong file raises it at the end of the block, even if the block has raised
                another error.
        """
        listed = cls.listed(path)
        states = {name: _state(path / name) for name in listed.manifest.files}
        with ThreadPoolExecutor(1) as beside:
            opening = beside.submit(cls.open, path)
            try:
                yield replace(listed, hashed=states)
            finally:
                opened = opening.result()
        if opened != listed or not all(opened.hashed[name].has_content_of(state) for name, state in states.items()):
            raise BundleError(f"{path}: has changed while it was loaded")

    def read(self, name: str) -> bytes:
        """Read a file and check the bytes that were read: another program may have changed the file since `open`.

        Raises:
            BundleError: the file cannot be read, or has changed.
        """
        file = self.path / name
        try:
            content = read_regular(file)
        except OSError as error:
            raise _unreadable(file, error) from error
        _compare(file, hashlib.sha256(content).hexdigest(), self.manifest.files[name])
        return content

    @contextmanager
    def mapped(self, name: str) -> Iterator[mmap.mmap | bytes]:
        """Map a large file into memory during the block, without reading all of it once more.

        If the file's state differs at the end of the block, the whole file is hashed again: a new link to the file
        changes its state too, and only changed bytes are an error. If it gets shorter, the process ends by SIGBUS.

        Yields:
            The bytes of the file; no bytes for a file that the manifest does not list.

        Raises:
            BundleError: the file cannot be read, or has changed.
        """
        if name not in self.manifest.files:
            yield b""
            return
        file = self.path / name
        with ExitStack() as stack:
            try:
                stream = stack.enter_context(open_regular(file))
                state = FileState.of(stream)
                if state != self.hashed.get(name):
                    _compare(file, _sha256(stream), self.manifest.files[name])
                # Not closed: a raised error may still refer to a part of the mapping.
                content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if state.size_bytes else b""
            except OSError as error:
                raise _unreadable(file, error) from error
            yield content
            self._check_again(file, name, state)

    def _check_again(self, file: Path, name: str, state: FileState) -> None:
        """Check the file at this path now: it may be another file than the mapped one, or have other bytes."""
        with _opened(file) as stream:
            changed = FileState.of(stream) != state and _sha256(stream) != self.manifest.files[name]
        if changed:
            raise BundleError(f"{file}: has changed while it was loaded")

    def graph(self, name: str) -> tuple[bytes, Path]:
        """Read the checked bytes of a graph, with its path for messages; raises as `read` does."""
        return self.read(name), self.path / name

    def tokenizer(self) -> Tokenizer:
        """Make the tokenizer from checked bytes.

        Raises:
            BundleError: as `read`; or the files are no tokenizer.
        """
        names = tokenizer_names(self.manifest.files.__contains__, self.path)
        return Tokenizer.of({self.path / name: self.read(name) for name in names})

    @property
    def has_shortlist(self) -> bool:
        """Whether the bundle has a shortlist and the graphs that use it."""
        return all(name in self.manifest.files for name in (STATES_DECODER, OUTPUT_LAYER, SHORTLIST))


def _check_entries(folder: Path, manifest: Manifest) -> None:
    """Raise BundleError if the manifest has no entry for a file that every bundle has."""
    for name in (ENCODER, DECODER, PLACE, COPY, SEARCH, *tokenizer_files(folder)):
        if name not in manifest.files:
            raise BundleError(f"{folder / MANIFEST}: files: no entry for {name}")


def _check(file: Path, expected: str) -> FileState:
    with _opened(file) as stream:
        state, actual = FileState.of(stream), _sha256(stream)
    _compare(file, actual, expected)
    return state


def _state(file: Path) -> FileState:
    with _opened(file) as stream:
        return FileState.of(stream)


@contextmanager
def _opened(file: Path) -> Iterator[BufferedReader]:
    """Open a file during the block; an unreadable file raises BundleError."""
    try:
        with open_regular(file) as stream:
            yield stream
    except OSError as error:
        raise _unreadable(file, error) from error


def _compare(file: Path, actual: str, expected: str) -> None:
    if actual != expected:
        raise BundleError(f"{file}: sha256 is {actual}, the manifest says {expected}")


def _unreadable(file: Path, error: OSError) -> BundleError:
    return BundleError(f"{file}: cannot read: {error.strerror}")


def sha256(file: Path) -> str:
    """Compute the SHA-256 of a file, in hex; raises OSError if the file is unreadable or not a regular file."""
    with open_regular(file) as stream:
        return _sha256(stream)


def _sha256(stream: BufferedReader) -> str:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def find_bundles(root: Path) -> list[Path]:
    """List the folders at or below `root` that hold a manifest, sorted; without folders being written or removed.

    Linked folders come last in the search; a folder with several paths is listed once.
    """
    found, seen, waiting = [], set(), [root]
    for start in waiting:
        for folder, names, _ in os.walk(start):
            path, real = Path(folder), os.path.realpath(folder)
            names[:] = [] if real in seen else sorted(name for name in names if not _in_transit(name))
            waiting += [path / name for name in names if (path / name).is_symlink()]  # os.walk does not follow them
            if real not in seen and (path / MANIFEST).exists():
                found.append(path)
            seen.add(real)
    return sorted(found)


def bundles_in(root: Path) -> list[Path]:
    """List the bundles at or below `root`, as :func:`find_bundles`.

    Raises:
        BundleError: there is none.
    """
    if not (found := find_bundles(root)):
        raise no_bundles(root)
    return found


def find_all_bundles(roots: Iterable[Path]) -> list[Path]:
    """List the bundles at or below each of `roots`, as :func:`find_bundles`."""
    return [path for root in roots for path in find_bundles(root)]


def no_bundles(root: Path) -> BundleError:
    """Make the error for a folder without bundles; its message says how to get a bundle."""
    if not root.exists():
        return BundleError(
            f"{root.absolute()}: no such folder; a model is a folder here, a name of the hub (OWNER/NAME) or of "
            "Firefox (firefox:en-de)"
        )
    return BundleError(
        f"{root.absolute()}: there is no bundle (no bundle.json in or below it), and no model that dragoman import "
        "reads; a bundle is made by dragoman export CHECKPOINT --out BUNDLE"
    )


def _in_transit(folder: str) -> bool:
    """Tell whether the name is that of a folder that export still writes or has replaced, or of a hidden folder."""
    return folder.startswith(".") or folder.endswith((".partial", ".old"))


# Enough for real translations, yet an endless decode stops before the model's limit.
TARGET_FACTOR = 2.0
TARGET_OFFSET = 20


def target_limit(
    source_tokens: int, max_target_tokens: int, factor: float = TARGET_FACTOR, offset: int = TARGET_OFFSET
) -> int:
    """Compute the limit of target tokens of a source: `factor` times its own tokens, plus `offset`.

    Args:
        source_tokens: number of source tokens, with the end-of-sentence token.
        max_target_tokens: upper bound of the result.
        factor: target tokens per source token.
        offset: target tokens of every source in addition.
    """
    return min(int(factor * source_tokens) + offset, max_target_tokens)


def cache_names(layers: int) -> list[str]:
    """Name the decoder's inputs for the keys and values of earlier target tokens, see `present_name`."""
    return [f"self_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]


def memory_names(layers: int) -> list[str]:
    """Name the decoder's inputs for the encoder memory; int8 memory is an output too, see `present_name`."""
    return [f"memory_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]


def state_names(layers: int) -> list[str]:
    """Name the decoder's inputs for the states of layers with a recurrence in place of self-attention."""
    return [f"state_{layer}" for layer in range(layers)]


def present_name(name: str) -> str:
    """Name the decoder's output for keys or values that are also an input: the same buffer, written in place.

    The output for a state is another buffer than the input, since a step may have to be run again.
    """
    return f"present_{name}"
