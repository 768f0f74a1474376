"""The methods of the service as functions of messages, the same for every transport; they know no gRPC."""
