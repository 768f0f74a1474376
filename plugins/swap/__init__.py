"""Models that are loaded when calls need them, and leave the memory for others, or once they are idle."""
