"""gRPC: only this package knows it. Requests come in, answers go out, and a port takes the calls."""
