"""Segments on their way to an engine: admission, turns of clients, results that are kept or shared."""
