"""The memory that models may take together: which of them can have room at all; arithmetic on what they cost."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from dragoman.errors import BundleError, InvalidRequestError
from service.registry.catalog import ServedModel
from service.settings import MEGABYTE, Settings, SettingsError

_log: Final = structlog.get_logger()


class ModelBudget:
    """What the settings say of memory.

    Attributes:
        bytes: for all models together; 0: as much as they need.
        pinned: names of the models that stay.
    """

    def __init__(self, settings: Settings) -> None:
        self.bytes: Final = settings.model_memory_mb * MEGABYTE
        self.pinned: Final = frozenset(settings.pinned_models)

    @property
    def bounded(self) -> bool:
        """Whether there is a limit."""
        return self.bytes > 0

    def check_start(self, costs: Mapping[str, int]) -> None:
        """Check that each model that a server starts with can have room beside those that stay.

        Args:
            costs: of all models, in bytes, by name.

        Raises:
            BundleError: one cannot.
            SettingsError: a pinned model is none of them.
        """
        if unknown := sorted(self.pinned - costs.keys()):
            raise SettingsError(
                f"DRAGOMAN_PINNED_MODELS (--pinned-models): no model {unknown[0]!r}; there are: {', '.join(costs)}"
            )
        for name in costs:
            self.check_room(name, costs)

    def check_room(self, name: str, costs: Mapping[str, int]) -> None:
        """Check that a model can have room beside the pinned ones.

        Args:
            name: of the model.
            costs: of all models, in bytes, by name.

        Raises:
            BundleError: it is too large.
        """
        pinned_bytes = sum(cost for other, cost in costs.items() if other in self.pinned and other != name)
        if self.bounded and costs[name] + pinned_bytes > self.bytes:
            beside = f", of which pinned models take {_mb(pinned_bytes)} MB" if pinned_bytes else ""
            raise BundleError(
                f"model {name}: takes {_mb(costs[name])} MB of memory, DRAGOMAN_MODEL_MEMORY_MB (--model-memory-mb) "
                f"allows {_mb(self.bytes)} MB{beside}"
            )

    def check_together(self, models: Sequence[ServedModel], served: Iterable[ServedModel]) -> None:
        """Check that models can be in memory at the same time.

        Args:
            models: that one call needs.
            served: all models.

        Raises:
            InvalidRequestError: they are too large together.
        """
        if not self.bounded:
            return
        room_bytes = self.bytes - sum(self.pinned_bytes(served, models))
        size_bytes = sum(model.cost_bytes for model in models)
        if size_bytes > room_bytes:
            names = ", ".join(model.name for model in models)
            raise InvalidRequestError(
                f"the call needs {len(models)} models at once ({names}), which take {_mb(size_bytes)} MB of memory; "
                f"the server has {_mb(room_bytes)} MB for them",
                metadata={"model": names},
            )

    def pinned_bytes(self, served: Iterable[ServedModel], but: Sequence[ServedModel]) -> list[int]:
        """List what the pinned models take, but for some of them, and for others of the same names."""
        names = self.pinned - {model.name for model in but}
        return [model.cost_bytes for model in served if model.name in names]

    def bounded_cost(self, model: ServedModel, cost_bytes: int, served: Iterable[ServedModel]) -> int:
        """Give the cost of a model as measured, but no more than can be its room: it would not be loaded again."""
        if not self.bounded:
            return cost_bytes
        room_bytes = self.bytes - sum(self.pinned_bytes(served, [model]))
        if cost_bytes > room_bytes:
            _log.warning("a model takes more memory than it may", model=model.name, mb=_mb(cost_bytes))
        return min(cost_bytes, room_bytes)


def _mb(size_bytes: int) -> int:
    """Give whole megabytes, rounded up."""
    return -(-size_bytes // MEGABYTE)
