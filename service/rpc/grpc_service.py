"""A service of gRPC, of this server or of a plugin."""

from typing import Any, Protocol

from google.protobuf.descriptor import FileDescriptor


class GrpcService(Protocol):
    """One service.

    Attributes:
        name: name with its package, such as "dragoman.v1.Translation".
        file: describes the service, and imports no other file.
    """

    name: str
    file: FileDescriptor

    def add_to(self, server: Any) -> None:
        """Add the service to a server of `grpc.aio` that has not started."""
