"""HTTP: the port, connections with limits, and one file of conversions for each protocol."""
