"""Models are loaded when calls need them, and unloaded to make room for others, or when they are idle."""
