"""The bundles and sentences that `bench.gpu` measures with, and its parts in order."""

import argparse
import lzma
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.exported import exported
from bench.gpu.stages import (
    Decoder,
    copy_bytes_per_s,
    missing_device,
    parity,
    placement,
    served,
    slot_counts,
    speed,
    step_bytes,
)
from bench.load.texts import DataFileError, open_data_file
from bench.peers.contender import Sentences
from dragoman.bundle import Bundle, target_limit
from dragoman.tokenizer import Tokenizer

__all__ = ["Rig", "missing_device", "read_pairs"]
_PARITY_SLOTS = 32


class Rig:
    """The bundles and sentences of a run, and its parts."""

    def __init__(self, arguments: argparse.Namespace, work: Path, say: Callable[[Mapping[str, Any]], None]) -> None:
        """Exports the checkpoint twice, unless the folder has both bundles.

        Args:
            arguments: of the command.
            work: where bundles and converted models are kept.
            say: is told the figures of a part that are there before it ends.

        Raises:
            BundleError: a bundle cannot be made or read.
            DataFileError: the data cannot be read, or no line of it is a pair.
        """
        self._arguments = arguments
        self._work = work
        self._say = say
        self._device: str = arguments.device
        texts, self._references = read_pairs(arguments.data, arguments.sentences)
        self._fp32 = Bundle.open(exported(arguments.checkpoint, "fp32", work))
        self._fp16 = Bundle.open(exported(arguments.checkpoint, "fp16", work))
        manifest, tokenizer = self._fp16.manifest, Tokenizer.open(self._fp16.path)
        sources = [[*tokenizer.encode(text), manifest.eos_id] for text in texts]
        self._texts = texts
        self._sentences = Sentences(
            [ids[-manifest.max_source_tokens :] for ids in sources],
            [target_limit(len(ids), manifest.max_target_tokens) for ids in sources],
        )

    def parts(self) -> dict[str, Callable[[], dict[str, Any]]]:
        """Name -> what measures it, in order."""
        return {
            "placement": self._placement,
            "parity": self._parity,
            "floor": lambda: self._floor,
            "speed": self._speed,
            "served": self._served,
        }

    def _placement(self) -> dict[str, Any]:
        return placement(self._fp16, self._device)

    def _parity(self) -> dict[str, Any]:
        return parity(self._fp32, self._fp16, self._device, _PARITY_SLOTS, self._sentences, self._references)

    @cached_property
    def _floor(self) -> dict[str, Any]:
        decoded = Decoder(self._fp16, self._device, _PARITY_SLOTS).decode(self._sentences)
        lengths = [len(ids) for ids in self._sentences.sources]
        read = step_bytes(self._fp16, lengths, [len(ids) + 1 for ids in decoded])
        bytes_per_s = copy_bytes_per_s(self._device)
        return {
            "copy_bytes_per_s": bytes_per_s,
            "weight_bytes": read.weights,
            "row_bytes": read.row,
            "step_ms_at_slots": {
                slots: read.least_ms(slots, bytes_per_s) for slots in slot_counts(self._arguments.most_slots)
            },
        }

    def _speed(self) -> dict[str, Any]:
        found: dict[str, Any] = {"peer": "ctranslate2" if self._peer_model else None}
        for slots in slot_counts(self._arguments.most_slots):
            figures = speed(self._fp16, self._device, slots, self._sentences, self._peer(slots))
            figures["floor_ms"] = self._floor["step_ms_at_slots"][slots]
            found[str(slots)] = figures
            self._say(figures)
        return found

    def _served(self) -> dict[str, Any]:
        return served(self._fp16, self._device, self._arguments.served_slots, self._texts, self._arguments.seconds)

    @cached_property
    def _peer_model(self) -> Any:
        """CTranslate2 on the same weights; None where it is not installed, or finds no GPU."""
        try:
            from bench.gpu.peer import open_peer
        except ModuleNotFoundError:
            return None
        return open_peer(self._arguments.checkpoint, self._work / "ctranslate2", self._device)

    def _peer(self, slots: int) -> Callable[[Sentences], int] | None:
        model = self._peer_model
        return None if model is None else lambda sentences: model.translate(sentences, slots)


def read_pairs(path: Path, limit: int) -> tuple[list[str], list[str]]:
    """The first sources and targets of source<TAB>target lines, at most `limit`.

    Raises:
        DataFileError: the file cannot be read, or no line of it is a pair.
    """
    try:
        with open_data_file(path) as file:
            lines = [line.decode().rstrip("\r\n").split("\t") for line in file]
    except (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error) as error:
        raise DataFileError(f"cannot read {path}: {error}") from error
    pairs = [line for line in lines if len(line) == 2 and all(map(str.strip, line))][:limit]
    if not pairs:
        raise DataFileError(f"no line of {path} is a pair of texts with a tab between")
    sources, targets = zip(*pairs, strict=True)
    return list(sources), list(targets)
