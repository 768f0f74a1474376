"""Features outside the core: each is a package that imports `service`, with entry points in pyproject.toml."""
