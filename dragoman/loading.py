"""Names of modules as values: of the client, and of dragoman-server where that is installed."""

import importlib
from typing import Any, Final

SERVER: Final = "dragoman_server"


def load(target: str) -> Any:
    """Import a module, and give what has a name in it, such as a function.

    Args:
        target: "module:name".

    Raises:
        ModuleNotFoundError: a module is missing. It is :data:`SERVER` where the module is one of dragoman-server,
            and that is not installed.
    """
    module, _, name = target.partition(":")
    if not module.startswith("dragoman."):
        importlib.import_module(SERVER)
    return getattr(importlib.import_module(module), name)
