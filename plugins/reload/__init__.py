"""Reloading: the served models follow the bundles that appear, change and disappear on disk."""
