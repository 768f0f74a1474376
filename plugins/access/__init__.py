"""Access control: API keys with limits, and TLS; all files are read again when they change."""
