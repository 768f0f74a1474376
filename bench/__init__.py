"""Measurements: of a running server, of the engine beside other programs, of what the machine could do."""
