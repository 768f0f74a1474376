"""The graphs of the encoder and the decoder, for buffers in host memory."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dragoman.bundle import (
    DECODER,
    ENCODER,
    MEMORY,
    SEARCH,
    STATES_DECODER,
    Bundle,
    Manifest,
)
from service.runtime.binding import encoder_feeds
from service.runtime.interfaces import RunSize
from service.runtime.output import OutputLayer
from service.runtime.sessions import open_graph
from service.runtime.slots import DecoderStep, SlotTable

# Enough tokens to use a core well; the active slots wait during a run. A run of the default model takes 80
# microseconds, and 19 more for each token; it reads all weights, which evicts the decoder's weights from the cache.
RUN_SIZE: Final = RunSize(tokens=512, cost=4, ahead=32, ahead_of_several=8)


class EncoderSession:
    """Source ids to encoder memory; thread-safe."""

    run_size = RUN_SIZE

    def __init__(self, bundle: Bundle, *, run_threads: int = 1, packed: bool = True) -> None:
        """Load the encoder graph; the arguments are those of `open_session`.

        Raises:
            BundleError: it cannot be loaded.
        """
        self.session = open_graph(bundle, ENCODER, run_threads=run_threads, packed=packed)
        self._pad_id = bundle.manifest.pad_id

    def encode(self, sources: Sequence[Sequence[int]]) -> list[NDArray[np.generic]]:
        """Run the encoder; gives the memory of each source, [its length, decoder_layers * 2 * heads * head_dim]."""
        (memory,) = self.session.run([MEMORY], encoder_feeds(sources, self._pad_id))
        return [memory[row, : len(ids)] for row, ids in enumerate(sources)]

    def close(self) -> None:
        """End the session; there is no run after it."""
        del self.session


class DecoderSession:
    """The decoder graph; thread-safe. Each thread runs its own `DecoderStep`."""

    def __init__(self, bundle: Bundle, *, run_threads: int = 1, packed: bool = True, shortlist: bool = True) -> None:
        """Load the decoder graph and the one that searches its logits.

        Args:
            run_threads, packed: as for `open_session`.
            shortlist: choose only from the candidates of each segment, where the bundle has a shortlist.

        Raises:
            BundleError: one of the graphs cannot be loaded.
        """
        narrow = shortlist and bundle.has_shortlist
        self.output = OutputLayer(bundle) if narrow else None
        self.session = open_graph(bundle, STATES_DECODER if narrow else DECODER, run_threads=run_threads, packed=packed)
        self.search = open_graph(bundle, SEARCH, run_threads=run_threads)

    def new_step(self, manifest: Manifest, slots: int) -> tuple[SlotTable, DecoderStep]:
        """Reserve the buffers of that number of slots, and bind the graph to them."""
        table = SlotTable(manifest, slots, self.output)
        return table, DecoderStep(self.session, self.search, table)

    def close(self) -> None:
        """Drop the sessions; a session ends once no step holds it."""
        del self.session, self.search, self.output
