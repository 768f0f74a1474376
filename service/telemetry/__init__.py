"""Metrics, log and traces of calls and models."""
