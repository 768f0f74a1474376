"""Traces: a span for each call, for OpenTelemetry."""
