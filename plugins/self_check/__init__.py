"""Before a server says that it serves: its models decode as they should on this machine."""
