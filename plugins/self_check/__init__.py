"""A check before a server reports that it serves: its models decode correctly on this machine."""
