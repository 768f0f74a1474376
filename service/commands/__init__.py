"""The commands of the server: serve and api-key."""
