"""Measurements of a running server, taken from outside."""
