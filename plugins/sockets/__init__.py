"""The sockets of gRPC, which does not expose them: limits connections per host, and ends all connections."""
