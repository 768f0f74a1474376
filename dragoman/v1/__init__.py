"""Generated stubs of the wire contract, version 1: see proto/dragoman/v1/translation.proto."""
