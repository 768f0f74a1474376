"""The commands of the client: translate and models, by a server, or in this process with what dragoman-server has."""
