"""Google's Cloud Translation API v3 on gRPC: the part that this server supports."""
