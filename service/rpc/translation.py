"""dragoman.v1.Translation on gRPC."""

from functools import partial
from typing import Any

import grpc.aio
from google.protobuf.descriptor import FileDescriptor

from dragoman.v1 import translation_pb2 as pb
from service.handlers.methods import all_methods
from service.handlers.translation import TranslationHandlers
from service.rpc.methods import Methods
from service.wire import SERVICE, CallProtocol


class Translation:
    """The service for servers of `grpc.aio`."""

    name: str = SERVICE
    file: FileDescriptor = pb.DESCRIPTOR

    def __init__(self, handlers: TranslationHandlers, max_request_bytes: int) -> None:
        self._handlers = handlers
        self._methods = Methods(handlers, max_request_bytes, CallProtocol.GRPC)

    def add_to(self, server: Any) -> None:
        """Add the service to a server that has not started."""
        handlers = {
            method.name: self._methods.make(
                method.name,
                partial(method.handle, self._handlers),
                method.request,
                method.answer,
                many=method.is_fed,
            )
            for method in all_methods()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
