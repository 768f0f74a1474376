"""The memory budget of all models: checks, from the models' costs, which models have room."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from dragoman.errors import BundleError, InvalidRequestError
from service.registry.catalog import ServedModel
from service.settings import MEGABYTE, Settings, SettingsError

_log: Final = structlog.get_logger()


class ModelBudget:
    """The memory settings.

    Attributes:
        bytes: the budget for all models together; 0: no limit.
        pinned: the names of the models that stay in memory.
    """

    def __init__(self, settings: Settings) -> None:
        self.bytes: Final = settings.model_memory_mb * MEGABYTE
        self.pinned: Final = frozenset(settings.pinned_models)

    @property
    def bounded(self) -> bool:
        """Whether there is a limit."""
        return self.bytes > 0

    def check_start(self, costs: Mapping[str, int]) -> None:
        """Check that each model at the start of a server has room beside the pinned models.

        Args:
            costs: the costs of all models, in bytes, by name.

        Raises:
            BundleError: a model has no room.
            SettingsError: a pinned model does not exist.
        """
        if unknown := sorted(self.pinned - costs.keys()):
            raise SettingsError(
                f"DRAGOMAN_PINNED_MODELS (--pinned-models): no model {unknown[0]!r}; there are: {', '.join(costs)}"
            )
        for name in costs:
            self.check_room(name, costs)

    def check_room(self, name: str, costs: Mapping[str, int]) -> None:
        """Check that a model has room beside the pinned models.

        Raises:
            BundleError: the model is too large.
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
            models: the models that one call needs.

        Raises:
            InvalidRequestError: the models are too large together.
        """
        if not self.bounded:
            return
        room_bytes = self.bytes - self.pinned_bytes(served, models)
        size_bytes = sum(model.cost_bytes for model in models)
        if size_bytes > room_bytes:
            names = ", ".join(model.name for model in models)
            raise InvalidRequestError(
                f"the call needs {len(models)} models at once ({names}), which take {_mb(size_bytes)} MB of memory; "
                f"the server has {_mb(room_bytes)} MB for them",
                metadata={"model": names},
            )

    def pinned_bytes(self, served: Iterable[ServedModel], but: Sequence[ServedModel]) -> int:
        """Add up the costs of the pinned models, except those in `but`, and others with the same names."""
        names = self.pinned - {model.name for model in but}
        return sum(model.cost_bytes for model in served if model.name in names)

    def bounded_cost(self, model: ServedModel, cost_bytes: int, served: Iterable[ServedModel]) -> int:
        """Limit the measured cost of a model to its possible room: otherwise it could not be loaded again."""
        if not self.bounded:
            return cost_bytes
        room_bytes = self.bytes - self.pinned_bytes(served, [model])
        if cost_bytes > room_bytes:
            _log.warning("a model takes more memory than it may", model=model.name, mb=_mb(cost_bytes))
        return min(cost_bytes, room_bytes)


def _mb(size_bytes: int) -> int:
    """Convert to whole megabytes, rounded up."""
    return -(-size_bytes // MEGABYTE)
