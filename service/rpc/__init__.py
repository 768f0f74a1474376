"""gRPC: the only rooms that know the wire. Requests in, answers out, and the port that they come through."""
