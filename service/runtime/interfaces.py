"""The interfaces of the graphs and slots of a decode batch, with buffers in host memory (`runtime.host` and
`runtime.slots`) or in device memory (`plugins.gpu`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import Manifest
from service.runtime.output import SlotOutputs


class Memory(Protocol):
    """The encoder memory of one source; only the encoder and the slots of the same kind know its form."""

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""

    def copy(self) -> "Memory":
        """Make a copy that shares no buffer with this memory, nor with others of its micro-batch."""

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
        asked: float32 [rows, asked]: log-probabilities of the tokens that were asked for.
    """

    ids: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    asked: NDArray[np.float32]


class RunSize(NamedTuple):
    """The limits and the cost of one run of an encoder.

    Attributes:
        tokens: most padded source tokens of a run; a longer source runs alone.
        cost: fixed cost of a run, in addition to its tokens, in tokens.
        ahead: most segments that are encoded before a slot is free for them, so that runs are few.
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
        run_size: limits and cost of its runs.
    """

    run_size: RunSize

    def encode(self, sources: Sequence[Sequence[int]]) -> Sequence[Memory]:
        """Run the encoder over a micro-batch of ids, none empty; gives the memory of each source."""

    def close(self) -> None:
        """End the session; there is no run after it."""


class Slots(Protocol):
    """The decode batch, whose first slots are the active ones.

    Attributes:
        outputs: candidates of each slot, to be set after the slot is filled; None: slots choose from all pieces.
    """

    outputs: SlotOutputs | None

    @property
    def cache_bytes(self) -> int:
        """Bytes reserved for the slots' own keys and values, for their encoder memories and for states."""

    def fill(self, slot: int, memory: Any) -> None:
        """Begin a segment in a slot, with a memory from the encoder of this kind; all later slots are free."""

    def force(self, slot: int, token: int) -> None:
        """Make a slot continue from `token` instead of its last valid token."""

    def commit(self, slots: int) -> None:
        """Make the last step valid in the first `slots` slots."""

    def move(self, source: int, target: int) -> None:
        """Move what is in slot `source` to slot `target`, whose segment has left."""

    def fork(self, source: int, target: int) -> None:
        """Begin slot `target` with the memory, keys and values of slot `source`; all later slots are free."""

    def copy(self, source: int, target: int, first: int) -> None:
        """Make a slot a copy of another with the same encoder memory; positions before `first` are equal already."""

    def logits_of(self, slot: int) -> NDArray[np.floating]:
        """Give the logits of the slot's next id, [vocabulary_size]; valid until the next run."""

    def attention_of(self, slot: int) -> NDArray[np.float32]:
        """Give the attention of the last run over the slot's source, [source tokens]."""


class Step(Protocol):
    """The decoder graph, bound to the rows of one slot table; belongs to one thread."""

    def prepare(self) -> None:
        """Do the one-time work of first runs, for each number of rows; on the thread of the runs, no slot in use."""

    def close(self) -> None:
        """Free what was prepared; there is no run after it."""

    def run(self, rows: int, start: int = 0) -> NDArray[np.int64]:
        """Decode one token of the slots from `start` to `start + rows`, without a commit; gives their next ids."""

    def best(self, start: int, count: int, asked: NDArray[np.int64]) -> Candidates:
        """Find the best tokens of slots, by the logits of the last run.

        Args:
            start: the first of the slots.
            count: number of tokens for each slot; fewer where the vocabulary has fewer.
            asked: further tokens whose log-probabilities are wanted, [slots, asked].
        """


class Decoder(Protocol):
    """The decoder graph; thread-safe. Each thread runs its own step."""

    def new_step(self, manifest: Manifest, slots: int) -> tuple[Slots, Step]:
        """Reserve the buffers of that number of slots, and bind the graph to them."""

    def close(self) -> None:
        """End the sessions; there is no run after it."""
