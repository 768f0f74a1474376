"""Names of the contract and of the protocols, which all packages may know."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeAlias

SERVICE: Final = "dragoman.v1.Translation"

HTML: Final = "text/html"
XML: Final = "text/xml"
TAGGED: Final = (HTML, XML)

# The metadata of a call: names in lower case, and values.
Metadata: TypeAlias = Iterable[tuple[str, str | bytes]]


class CallProtocol(StrEnum):
    """The protocol of a call."""

    GRPC = "grpc"
    HTTP = "http"  # the JSON of this server's own API
    CONNECT = "connect"
    LIBRETRANSLATE = "libretranslate"
    DEEPL = "deepl"
    GOOGLE = "google"  # Cloud Translation v3 over gRPC
