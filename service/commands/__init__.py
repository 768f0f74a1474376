"""The command of the server: serve."""
