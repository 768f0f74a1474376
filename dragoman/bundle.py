"""The bundle: the folder that export writes and a server loads. The only contract between the two."""

import hashlib
import mmap
import os
import re
from collections.abc import Iterator, Mapping
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
# Of a model with a shortlist: the decoder without its output layer, the output layer, and what it is used for.
STATES_DECODER = "states_decoder.onnx"
OUTPUT_LAYER = "output_layer.onnx"
SHORTLIST = "shortlist.bin"
# The weights of encoder and decoder, each once; the graphs say where in it.
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
# In place of both, of the decoder without its output layer, which reads them ...
STATES = "states"
# ... together with what it has of the pieces that it chooses from: ids, weights, worths of bytes, biases.
CANDIDATES = "candidates"
OUTPUT_WEIGHTS = "output_weights"
OUTPUT_WORTHS = "output_worths"
OUTPUT_BIASES = "output_biases"
# Of one layer's attention to the source, before the softmax.
ATTENTION_SCORES = "attention_scores"
# Of what lays the memories of some sources out as the decoder reads them, in its inputs of `memory_names` ...
PADDING = "padding"
SOURCE_ROWS = "source_rows"
SLOT_ROWS = "slot_rows"
# ... and of what copies bytes.
BYTES = "bytes"
COPIED = "copied"
# Of what finds the best tokens of each row of `LOGITS`, and how probable they and others are.
COUNT = "count"
ASKED_IDS = "asked_ids"
BEST_IDS = "best_ids"
BEST_LOG_PROBABILITIES = "best_log_probabilities"
ASKED_LOG_PROBABILITIES = "asked_log_probabilities"

NAME_PATTERN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")  # of a model
# Bounds of what a model may say of itself, far above those that there are. Memory is reserved by these numbers.
MOST_LAYERS = 1_000
WIDEST = 2**16
MOST_PIECES = 2**24
LONGEST = 2**16

# The formats that are read, see docs/versions.md. A field that a format adds has a default: what those before it mean.
OLDEST_FORMAT = 6
FORMAT = 8

Precision = Literal["fp32", "int8", "fp16"]
# What a decoder layer knows the earlier tokens by: their keys and values, or a state of a fixed size.
DecoderCell = Literal["attention", "ssru"]
MAX_NOTE = 200  # characters
FAMILY = "transformer"  # of a model that was trained here; others are named by their config.json


class Provenance(BaseModel):
    """Where a bundle comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    checkpoint_sha256: str
    versions: dict[str, str] = Field(default_factory=dict)


class AlignmentHeads(BaseModel):
    """The attention heads of the decoder that look at the source word which is translated.

    Attributes:
        layer: of the decoder, from 0; the decoder graph gives the scores of all its heads.
        heads: of this layer, from 0; their mean is the alignment.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layer: int = Field(ge=0, lt=MOST_LAYERS)
    heads: tuple[int, ...] = Field(min_length=1, max_length=WIDEST)


class Manifest(BaseModel):
    """`bundle.json`: all that a server must know before it opens a graph. Lengths are in tokens.

    `stand_ins` are names that the model copies into its translations as they are, as the export has measured. `note`
    says in one line what the model is for. `quality` is what quality estimates are made of; None: nobody has calibrated
    the model.
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
        """Refuse other formats by their number alone: nothing is known of their fields."""
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
        if self.attention_width > WIDEST:
            raise ValueError(f"heads {self.heads} times head_dim {self.head_dim} must be at most {WIDEST}")
        if not self.note.isprintable():
            raise ValueError(f"note: must be one line of characters that can be printed, is {self.note!r}")
        if self.alignment.layer >= self.decoder_layers or not set(self.alignment.heads) <= set(range(self.heads)):
            raise ValueError(f"alignment: there is no such layer or head in {self.alignment}")
        marks, room = self.languages.longest_source_marks, self.max_source_tokens
        if marks + 2 > room:  # a token of text, and the end of the sentence
            raise ValueError(f"max_source_tokens {room} leave no room for text beside {marks} tokens of languages")
        for name in self.files:
            if Path(name).name != name or name in ("", "..") or "\0" in name:
                raise ValueError(f"files: {name!r} is not a plain file name")
        return self

    @property
    def source_languages(self) -> tuple[str, ...]:
        """BCP-47 codes of the languages that it translates from."""
        return self.languages.sources

    @property
    def target_languages(self) -> tuple[str, ...]:
        """BCP-47 codes of the languages that it translates into."""
        return self.languages.targets

    @property
    def target_capacity(self) -> int:
        """Positions of a translation: its own tokens, and those that it is made to begin with."""
        return self.max_target_tokens + self.languages.longest_target_prefix

    @property
    def cached_layers(self) -> int:
        """Decoder layers that keep keys and values of the target's own tokens."""
        return self.decoder_layers if self.decoder_cell == "attention" else 0

    @property
    def state_layers(self) -> int:
        """Decoder layers that keep a state, `d_model` numbers, in their place."""
        return self.decoder_layers - self.cached_layers

    @property
    def attention_width(self) -> int:
        """Numbers that one layer keeps of a position's keys, and as many of its values; not always `d_model`."""
        return self.heads * self.head_dim

    def write(self, path: Path) -> None:
        """Write it into the folder of its bundle, whole or not at all; raises OSError where it cannot be written."""
        write_whole(path / MANIFEST, self.model_dump_json(indent=2).encode() + b"\n")

    @classmethod
    def read(cls, path: Path) -> "Manifest":
        """Read the manifest of a bundle, whose files remain unchecked.

        Raises:
            BundleError: it is missing, of another format or inconsistent.
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
        manifest: what it says of itself.
        hashed: what each file was when its hash was checked, or was to be; one that has changed since is hashed again.
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
        """Read a bundle whose files remain unchecked, but for their names.

        Raises:
            BundleError: the manifest is missing, of another format or inconsistent, or lacks a file.
        """
        manifest = Manifest.read(path)
        _check_entries(path, manifest)
        return cls(path, manifest)

    @classmethod
    @contextmanager
    def opening(cls, path: Path) -> Iterator["Bundle"]:
        """Read a bundle, and check its files on another thread during the block: hashes of large files take time.

        What the block makes of it may only be used behind the block.

        Raises:
            BundleError: as `open`; for a file that is not what it should be, at the end of the block, whatever else
                the block has raised by then.
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
        """Read a file, and check these very bytes: another program may have written to it since `open`.

        Raises:
            BundleError: it cannot be read, or has changed.
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
        """Map a large file into memory for the time of the block, without reading all of it once more.

        If its state differs at the end of the block, all of it is read again: a link to it changes the state too, and
        only other bytes are an error. If it is made shorter meanwhile, the process ends by SIGBUS.

        Yields:
            Its bytes; none of a file that the manifest does not list.

        Raises:
            BundleError: it cannot be read, or has changed.
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
                # Not closed: an error that is on its way may still hold a part of it.
                content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if state.size_bytes else b""
            except OSError as error:
                raise _unreadable(file, error) from error
            yield content
            self._check_again(file, name, state)

    def _check_again(self, file: Path, name: str, state: FileState) -> None:
        """Check what lies there now: another file than the one that was mapped, or other bytes."""
        with _opened(file) as stream:
            changed = FileState.of(stream) != state and _sha256(stream) != self.manifest.files[name]
        if changed:
            raise BundleError(f"{file}: has changed while it was loaded")

    def graph(self, name: str) -> tuple[bytes, Path]:
        """Read the checked bytes of a graph, and give its file, for messages; raises as `read` does."""
        return self.read(name), self.path / name

    def tokenizer(self) -> Tokenizer:
        """Make the tokenizer of checked bytes.

        Raises:
            BundleError: as `read`, or it is no tokenizer.
        """
        names = tokenizer_names(self.manifest.files.__contains__, self.path)
        return Tokenizer.of({self.path / name: self.read(name) for name in names})

    @property
    def has_shortlist(self) -> bool:
        """Whether it says what each source piece may become, and has the graphs for it."""
        return all(name in self.manifest.files for name in (STATES_DECODER, OUTPUT_LAYER, SHORTLIST))


def _check_entries(folder: Path, manifest: Manifest) -> None:
    """Raise BundleError where the manifest lacks a file that every bundle has."""
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
    """Open a file for the time of the block; that it cannot be read is a BundleError."""
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
    """Compute the SHA-256 of a file, in hex; raises OSError where it cannot be read or is no regular file."""
    with open_regular(file) as stream:
        return _sha256(stream)


def _sha256(stream: BufferedReader) -> str:
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def find_bundles(root: Path) -> list[Path]:
    """List the folders at or below `root` that hold a manifest, sorted; none that is being written or removed.

    Links to folders are followed, after all folders that are there themselves; none is listed under two paths.
    """
    found, seen, waiting = [], set(), [root]
    for start in waiting:
        for folder, names, _ in os.walk(start):
            path, real = Path(folder), os.path.realpath(folder)
            names[:] = [] if real in seen else sorted(name for name in names if not _in_transit(name))
            waiting += [path / name for name in names if (path / name).is_symlink()]  # which os.walk leaves out
            if real not in seen and (path / MANIFEST).exists():
                found.append(path)
            seen.add(real)
    return sorted(found)


def no_bundles(root: Path) -> BundleError:
    """Make the error of a folder in which `find_bundles` found nothing; says where a bundle comes from."""
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
    """Tell whether a folder of this name is still written by export, was replaced by it, or is hidden."""
    return folder.startswith(".") or folder.endswith((".partial", ".old"))


# Generous, yet nothing runs to the model's limit that never ends.
TARGET_FACTOR = 2.0
TARGET_OFFSET = 20


def target_limit(
    source_tokens: int, max_target_tokens: int, factor: float = TARGET_FACTOR, offset: int = TARGET_OFFSET
) -> int:
    """Compute how many target tokens a source may have: `factor` times its own tokens, and `offset`.

    Args:
        source_tokens: the end-of-sentence token counted.
        max_target_tokens: never more.
        factor: what a longer source adds.
        offset: what every source may have.
    """
    return min(int(factor * source_tokens) + offset, max_target_tokens)


def cache_names(layers: int) -> list[str]:
    """Name the decoder's inputs for its own keys and values, see `present_name`."""
    return [f"self_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]


def memory_names(layers: int) -> list[str]:
    """Name the decoder's inputs for the encoder memory; int8 memory is an output too, see `present_name`."""
    return [f"memory_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value")]


def state_names(layers: int) -> list[str]:
    """Name the decoder's inputs for the states of layers that have a recurrence in place of self-attention."""
    return [f"state_{layer}" for layer in range(layers)]


def present_name(name: str) -> str:
    """Name the decoder's output for keys or values that are also its input: the same buffer, written in place.

    That for a state is another buffer than the input, since a step may have to be run again.
    """
    return f"present_{name}"
