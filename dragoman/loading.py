"""Import by name: modules of the client, and those of dragoman-server if it is installed."""

import importlib
from typing import Any, Final

SERVER: Final = "dragoman_server"


def load(target: str) -> Any:
    """Import a module, and return one of its names, such as a function.

    Args:
        target: "module:name".

    Raises:
        ModuleNotFoundError: a module is missing. The error names :data:`SERVER` if dragoman-server is not installed and
            the module belongs to it.
    """
    module, _, name = target.partition(":")
    if not module.startswith("dragoman."):
        importlib.import_module(SERVER)
    return getattr(importlib.import_module(module), name)
