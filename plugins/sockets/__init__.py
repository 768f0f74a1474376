"""The sockets of gRPC, which gives none out: hosts with too many connections, and the end of all of them."""
