"""The standard services of gRPC, health and reflection, which need no key; how many calls of them a host may have."""
