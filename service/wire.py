"""Names of the contract, and of the protocols that it is spoken by, that all packages may know."""

from enum import StrEnum
from typing import Final

SERVICE: Final = "dragoman.v1.Translation"


class Protocol(StrEnum):
    """By what a call came."""

    GRPC = "grpc"
    HTTP = "http"  # the JSON of this server's own API
    CONNECT = "connect"
    LIBRETRANSLATE = "libretranslate"
