"""gRPC's standard services, health and reflection, which need no key; their calls are limited per host."""
