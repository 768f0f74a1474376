"""The load test: a load on a server, and a report of what became of it."""
