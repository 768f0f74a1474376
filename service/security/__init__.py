"""Who may call, and how much: keys, hosts, TLS."""
