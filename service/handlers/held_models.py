"""The models of a call: chosen, waited for where they are not in memory, and held until the call has ended."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from service.handlers.context import CallContext
from service.handlers.gate import Gate
from service.registry.catalog import Catalog, ServedModel
from service.registry.model_memory import ModelMemory


class NeedsModels(Protocol):
    """What is asked for of some texts."""

    @property
    def models(self) -> Sequence[ServedModel]:
        """That they go through."""


_Chosen = TypeVar("_Chosen", bound=NeedsModels)


class HeldModels:
    """Holds the models of calls.

    Args:
        gate: of the server.
        memory: of the server; None: all models are in memory.
    """

    def __init__(self, gate: Gate, memory: ModelMemory | None) -> None:
        self._gate = gate
        self._memory = memory

    @asynccontextmanager
    async def held(
        self, context: CallContext, request: Message, choose: Callable[[Catalog], Sequence[_Chosen]]
    ) -> AsyncIterator[Sequence[_Chosen]]:
        """Hold the models of a call in memory.

        Args:
            context: of the call.
            request: its message, which is kept while it waits.
            choose: chooses among the models; asked again where one was replaced while the call waited for it.

        Yields:
            What was chosen.

        Raises:
            DragomanError: what `choose` raises; or the models cannot be brought into memory in time.
        """
        with ExitStack() as held:
            while True:
                chosen = choose(self._gate.catalog())
                models = list(dict.fromkeys(model for each in chosen for model in each.models))
                if self._memory is None or all(model.takes_calls for model in models):
                    for model in models:
                        held.enter_context(model.held())
                    break
                async with self._gate.limited(context):
                    if await self._memory.bring(models, held, request.ByteSize(), context.caller.name):
                        break
            yield chosen
