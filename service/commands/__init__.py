"""The commands of the server, serve and api-key; and what translate and models need to work without one."""
