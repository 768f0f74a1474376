"""What a decode batch asks of the graphs and of its slots, wherever their buffers lie: in host memory (`runtime.host`
and `runtime.slots`) or in a device's (`plugins.gpu`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from service.runtime.output import SlotOutputs


class Memory(Protocol):
    """The encoder memory of one source; what it consists of, the encoder and the slots of one kind know."""

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""

    def copy(self) -> "Memory":
        """Make one that shares nothing with it, nor with the others of its micro-batch."""

    def __array__(self, dtype: Any = None, /) -> NDArray[np.generic]:
        """Give its numbers in host memory, for `numpy.asarray`.

        Returns:
            [source tokens, decoder_layers * 2 * heads * head_dim].
        """


class Candidates(NamedTuple):
    """The best tokens of some rows, the best first.

    Attributes:
        ids: int64 [rows, count].
        log_probabilities: float32 [rows, count], natural logarithms.
        asked: float32 [rows, asked]: those of the tokens that were asked for.
    """

    ids: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    asked: NDArray[np.float32]


class RunSize(NamedTuple):
    """How much one run of an encoder takes.

    Attributes:
        tokens: padded source tokens at most, but for a source that is longer.
        cost: of a run beside its tokens, in tokens.
        ahead: segments at most that are encoded before there is a slot for them, so that runs are few.
        ahead_of_several: the same while several clients wait. Encoded segments have left the fair queue, so each one
            delays a new client.
    """

    tokens: int
    cost: int
    ahead: int
    ahead_of_several: int


class Encoder(Protocol):
    """Source ids to encoder memory; thread-safe.

    Attributes:
        run_size: what its runs are cut by.
    """

    run_size: RunSize

    def encode(self, sources: Sequence[Sequence[int]]) -> Sequence[Memory]:
        """Run the encoder over a micro-batch of ids, none empty; gives the memory of each source."""

    def close(self) -> None:
        """End the session; there is no run after it."""


class Slots(Protocol):
    """The decode batch, whose first slots are the active ones.

    Attributes:
        outputs: what each slot may choose from, to be told when it has been filled; None: from all pieces.
    """

    outputs: SlotOutputs | None

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for keys and values, own ones and the sources'."""

    def fill(self, slot: int, memory: Any) -> None:
        """Begin a segment in a slot, those behind it being free, with a memory that the encoder of this kind gave."""

    def force(self, slot: int, token: int) -> None:
        """Let a slot go on from another token than the last one that is valid."""

    def commit(self, slots: int) -> None:
        """Make a step of the first slots valid."""

    def move(self, source: int, target: int) -> None:
        """Let a slot take the place of another, whose segment has left."""

    def fork(self, source: int, target: int) -> None:
        """Begin a slot, those behind it being free, as a copy of another: of its memory, keys and values."""

    def copy(self, source: int, target: int, first: int) -> None:
        """Let a slot go on as another of the same memory, from whose keys and values its own differ from `first` on."""

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give what the slot's next id was chosen from, [vocabulary_size]; good until the next run."""

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        """Give how much the last run looked at each token of the slot's source, [source tokens]."""


class Step(Protocol):
    """The decoder graph, bound to the rows of one slot table; belongs to one thread."""

    def prepare(self) -> None:
        """Do what the first run of any number of rows does once, on the thread that will run; no slot is in use."""

    def close(self) -> None:
        """Give back what was prepared; there is no run after it."""

    def run(self, rows: int, start: int = 0) -> NDArray[np.int64]:
        """Decode one token of the slots from `start` to `start + rows`, without a commit; gives their next ids."""

    def best(self, start: int, count: int, asked: NDArray[np.int64]) -> Candidates:
        """Find the best tokens of slots, by the logits of the last run.

        Args:
            start: the first of the slots.
            count: of each, fewer where the vocabulary has fewer.
            asked: tokens whose log-probabilities are wanted besides, [slots, asked].
        """


class Decoder(Protocol):
    """The decoder graph; thread-safe. What a thread runs is a step of its own."""

    def new_step(self, manifest: Manifest, slots: int) -> tuple[Slots, Step]:
        """Reserve the buffers of that number of slots, and bind the graph to them."""

    def close(self) -> None:
        """End the sessions; there is no run after it."""
