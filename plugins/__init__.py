"""The features beside the core: each is a package that imports `service`, and pyproject.toml has its entry points."""
