"""Names of the contract that are known beyond gRPC's own rooms."""

from typing import Final

SERVICE: Final = "dragoman.v1.Translation"
