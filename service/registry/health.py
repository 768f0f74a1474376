"""The health of the server and of each model, asked for or followed; lives on the event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Final

from service.wire import SERVICE

_SERVER: Final = ("", SERVICE)
BUNDLES: Final = "dragoman.bundles"  # no gRPC service: a name for the operators' checks


def name_of(model: str) -> str:
    """Give the name under which the health of a model is asked for."""
    return f"{SERVICE}/{model}"


class Health:
    """Nothing is serving before :meth:`serve` names the models, nor after :meth:`leave`.

    The names "" and "dragoman.v1.Translation" stand for the server: it is serving unless a step of any model stalls.
    "dragoman.v1.Translation/<model>" stands for a model. A model that was served, or should be, and is not now, is
    reported as not serving. "dragoman.bundles" is serving while the served bundles are the bundles on disk.
    """

    def __init__(self) -> None:
        self._served: frozenset[str] = frozenset()
        self._stalled: frozenset[str] = frozenset()
        self._unloadable: frozenset[str] = frozenset()
        self._agree = True
        self._left = False
        self._ended = False
        self._serving = dict.fromkeys((*_SERVER, BUNDLES), False)
        self._news = asyncio.Event()

    @property
    def serving(self) -> bool:
        """Whether the server serves; for any thread."""
        return self._serving[""]

    def is_serving(self, name: str) -> bool | None:
        """Tell whether a server or model serves; None for an unknown name."""
        return self._serving.get(name)

    def all(self) -> dict[str, bool]:
        """Tell whether the server and all models serve, by name; a copy."""
        return dict(self._serving)

    async def follow(self, name: str) -> AsyncIterator[bool | None]:
        """Yield whether a server or model serves, now and after each change; ends after :meth:`end`."""
        told: list[bool | None] = []
        while True:
            news, serving = self._news, self.is_serving(name)
            if [serving] != told:
                yield serving
                told = [serving]
            elif self._ended:
                return
            else:
                await news.wait()

    def serve(self, models: Iterable[str]) -> None:
        """Note that these models are served now, and no others."""
        self._served = frozenset(models)
        self._tell()

    def miss(self, model: str) -> None:
        """Note that a model could not be loaded; the state of a model that is still served does not change."""
        self._serving.setdefault(name_of(model), False)
        self._tell()

    def agree(self, *, agree: bool) -> None:
        """Note whether the served bundles are the bundles on disk: none was refused, and none is gone."""
        self._agree = agree
        self._tell()

    def stall(self, models: Iterable[str]) -> None:
        """Note the models in which a step stalls now; in all other models none does."""
        self._stalled = frozenset(models)
        self._tell()

    def unloadable(self, models: Iterable[str]) -> None:
        """Note all models that could not be loaded when a call needed them."""
        self._unloadable = frozenset(models)
        self._tell()

    def leave(self) -> None:
        """Note that the server shuts down."""
        self._left = True
        self._tell()

    def end(self) -> None:
        """End all :meth:`follow` calls: the server has stopped. gRPC would cancel them, and log each as an error."""
        self._ended = True
        self._tell()

    def _tell(self) -> None:
        up = bool(self._served) and not self._left
        for name in _SERVER:
            self._serving[name] = up and not self._stalled
        self._serving[BUNDLES] = up and self._agree
        for name in [*self._serving.keys() - {*_SERVER, BUNDLES}, *map(name_of, self._served)]:
            self._serving[name] = False
        if up:
            self._serving |= {name_of(model): True for model in self._served - self._stalled - self._unloadable}
        news, self._news = self._news, asyncio.Event()
        news.set()
