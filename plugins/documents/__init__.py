"""Untrusted documents: each is read and written in its own process, with system limits on memory and time."""
