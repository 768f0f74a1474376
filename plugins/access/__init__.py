"""Who may call: those with an API key, within its limits, and over TLS; all of it read anew when its files change."""
