"""Functions by their names: of the client, and of dragoman-server where that is installed."""

import importlib
from collections.abc import Callable
from typing import Any, Final

SERVER: Final = "dragoman_server"


def load(target: str) -> Callable[..., Any]:
    """Import a function.

    Args:
        target: "module:function".

    Raises:
        ModuleNotFoundError: a module is missing. It is :data:`SERVER` where the function is one of dragoman-server,
            and that is not installed.
    """
    module, _, function = target.partition(":")
    if not module.startswith("dragoman."):
        importlib.import_module(SERVER)
    loaded: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return loaded
