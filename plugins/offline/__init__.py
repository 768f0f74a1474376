"""The server-less part of `dragoman translate`, `detect`, `score`, `models` and `bulk`."""
