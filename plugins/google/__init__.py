"""The service of Google's Cloud Translation on gRPC, version 3: the part that this server can answer."""
