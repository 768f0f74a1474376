"""Traces: a span of each call, for OpenTelemetry."""
