"""The models of a call: waited for where they are not in memory, and held until the call has ended."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.registry.catalog import Catalog, ServedModel
from service.registry.residency import Residency


class NeedsModels(Protocol):
    """What texts ask for."""

    @property
    def models(self) -> Sequence[ServedModel]:
        """The models that they go through."""


_Chosen = TypeVar("_Chosen", bound=NeedsModels)


class Leases:
    """Holds the models of calls.

    Args:
        memory: of the server; None: all models are in memory.
    """

    def __init__(self, gate: Gate, memory: Residency | None) -> None:
        self._gate = gate
        self._memory = memory

    async def acquire(
        self, held: ExitStack, context: CallContext, request: Message, choose: Callable[[Catalog], Sequence[_Chosen]]
    ) -> Sequence[_Chosen]:
        """Hold the models of a call.

        Args:
            held: lets go of them, when the call ends.
            request: its message, which is kept while it waits.
            choose: chooses among the models; asked again where one was replaced while the call waited for it.

        Returns:
            What was chosen.

        Raises:
            DragomanError: what `choose` raises; or the models cannot be brought into memory in time.
        """
        while True:
            chosen = choose(self._gate.catalog())
            models = list(dict.fromkeys(model for each in chosen for model in each.models))
            if self._memory is None or all(model.takes_calls for model in models):
                for model in models:
                    held.enter_context(model.held())
                return chosen
            async with self._gate.limited(context):
                if await self._memory.bring(models, held, request.ByteSize(), context.caller.name):
                    return chosen
