"""What `dragoman translate`, `detect`, `score`, `models` and `bulk` do without a server."""
