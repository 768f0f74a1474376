"""The methods of the service as functions of messages, the same for every transport; know no gRPC."""
