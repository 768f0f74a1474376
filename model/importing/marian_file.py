"""Marian's files: their weights under the names, and in the layout, of Hugging Face's MarianMTModel."""

import re
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from dragoman.errors import DataError
from model.arrays import Array, DType
from model.importing.marian_bin import MarianBin
from model.importing.start_row import shape_with_start, with_start

_SETTINGS: Final = "special:model.yml"
_TYPES: Final = (np.dtype(np.float32), np.dtype(np.float16))
_BIAS: Final = "final_logits_bias"
_TABLES: Final = {
    "Wemb": "model.shared.weight",
    "encoder_Wemb": "model.encoder.embed_tokens.weight",
    "decoder_Wemb": "model.decoder.embed_tokens.weight",
    "decoder_ff_logit_out_W": "lm_head.weight",
    "decoder_ff_logit_out_Wt": "lm_head.weight",
    "decoder_ff_logit_out_b": _BIAS,
}
_OF_TARGET: Final = frozenset(_TABLES.values()) - {_TABLES["encoder_Wemb"]}
_LAYER: Final = re.compile(r"^(encoder|decoder)_l([1-9]\d*)_(.+)$")
_TOP: Final = re.compile(r"^(encoder|decoder)_(emb|top)_ln_(scale|bias)(?:_pre)?$")
_NORM: Final = re.compile(r"^(self_Wo|context_Wo|ffn_ffn)_ln_(scale|bias)(?:_pre)?$")
_RECURRENCE: Final = re.compile(r"^rnn(?:_(W|Wf|bf)|_ffn_ln_(scale|bias))$")
_LINEAR: Final = re.compile(r"^(?:(self|context)_([Wb])([qkvo])|ffn_([Wb])([12]))$")
_NORMS: Final = {
    "self_Wo": "self_attn_layer_norm",
    "context_Wo": "encoder_attn_layer_norm",
    "ffn_ffn": "final_layer_norm",
    "emb": "layernorm_embedding",
    "top": "layer_norm",
}
_ATTENTIONS: Final = {"self": "self_attn", "context": "encoder_attn"}
# The recurrence, which Hugging Face's model does not have.
_RECURRENCES: Final = {"W": "admit.weight", "Wf": "forget.weight", "bf": "forget.bias"}
_PARTS: Final = {"W": "weight", "b": "bias", "scale": "weight", "bias": "bias"}


class MarianWeights:
    """The weights of a file, as `model.safetensors_file.Weights`; one whose name is unknown here keeps it.

    Attributes:
        settings: the settings of the model in the file, `special:model.yml`.
    """

    def __init__(self, file: Path) -> None:
        """Open a file, and read the settings of the model.

        Raises:
            DataError: the file is no such file, or has no settings.
        """
        self._file = file
        try:
            self._content = _Npz(file) if file.suffix == ".npz" else MarianBin(file)
            names = [name for name in self._content.names if name != _SETTINGS]
            self._headers = {name: self._content.header(name) for name in names}
            settings = yaml.safe_load(self._content.read(_SETTINGS).tobytes().rstrip(b"\0"))
        except (OSError, EOFError, ValueError, AttributeError, KeyError, zipfile.BadZipFile, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"{file}: cannot read a model of Marian: {reason:.200}") from error
        if not isinstance(settings, dict):
            raise DataError(f"{file}: its {_SETTINGS} does not say what the model is")
        self.settings: dict[str, Any] = settings
        self._stored = {hugging_face_name(name): name for name in names}

    @property
    def names(self) -> Iterable[str]:
        """The names of all weights."""
        return self._stored.keys()

    def shape(self, name: str) -> tuple[int, ...]:
        """Give the shape of a weight, without reading it."""
        shape, _ = self._headers[self._stored[name]]
        if self._is_row(name):
            shape = shape[1:]
        elif self._is_transposed(name):
            shape = shape[::-1]
        return shape_with_start(shape) if name in _OF_TARGET else shape

    def dtype(self, name: str) -> DType:
        """Tell the type of the values.

        Raises:
            DataError: the type is neither fp32 nor fp16.
        """
        _, stored = self._headers[self._stored[name]]
        if stored not in _TYPES:
            known = " or ".join(map(str, _TYPES))
            raise DataError(f"{self._file}: {self._stored[name]} is stored as {stored}, not as {known}")
        return stored

    def read(self, name: str) -> Array:
        """Read a weight.

        Raises:
            DataError: the weight is damaged.
        """
        stored = self._stored[name]
        try:
            array = self._content.read(stored)
        except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{self._file}: cannot read {stored}: {error}") from error
        if self._is_row(name):
            array = array[0]
        elif self._is_transposed(name):
            array = array.T
        return with_start(array) if name in _OF_TARGET else array

    def _is_row(self, name: str) -> bool:
        """Tell whether the weight is a vector, which Marian stores as [1, width]."""
        shape, _ = self._headers[self._stored[name]]
        return len(shape) == 2 and shape[0] == 1 and (name == _BIAS or name.endswith(".bias") or "norm" in name)

    def _is_transposed(self, name: str) -> bool:
        """Tell whether the weight is a matrix [inputs, outputs]; embeddings have a row for each piece instead."""
        stored = self._stored[name]
        return name != stored and len(self._headers[stored][0]) == 2 and not stored.endswith(("Wemb", "Wt"))


class _Npz:
    """The arrays of an .npz, with the interface of `model.importing.marian_bin.MarianBin`."""

    def __init__(self, file: Path) -> None:
        self._content = np.load(file, allow_pickle=False)
        self.names: list[str] = self._content.files

    def read(self, name: str) -> Array:
        return self._content[name]  # type: ignore[no-any-return]

    def header(self, name: str) -> tuple[tuple[int, ...], DType]:
        with self._content.zip.open(f"{name}.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
        return shape, dtype


def hugging_face_name(name: str) -> str:
    """Convert a Marian name of a weight to Hugging Face's; an unknown name is kept."""
    if name in _TABLES:
        return _TABLES[name]
    if top := _TOP.match(name):
        side, norm, part = top.groups()
        return f"model.{side}.{_NORMS[norm]}.{_PARTS[part]}"
    if not (layer := _LAYER.match(name)):
        return name
    side, number, rest = layer.groups()
    path = f"model.{side}.layers.{int(number) - 1}"
    if norm := _NORM.match(rest):
        return f"{path}.{_NORMS[norm[1]]}.{_PARTS[norm[2]]}"
    if recurrence := _RECURRENCE.match(rest):
        weight, norm_part = recurrence.groups()
        return f"{path}.recurrence.{_RECURRENCES[weight] if weight else f'norm.{_PARTS[norm_part]}'}"
    if not (linear := _LINEAR.match(rest)):
        return name
    attention, part, projection, ffn_part, ffn = linear.groups()
    if ffn:
        return f"{path}.fc{ffn}.{_PARTS[ffn_part]}"
    return f"{path}.{_ATTENTIONS[attention]}.{'out' if projection == 'o' else projection}_proj.{_PARTS[part]}"
