"""Access of callers, and their limits: keys, hosts, TLS."""
