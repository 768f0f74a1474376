"""The commands of the client. They use a server or, with dragoman-server installed, a model in this process."""
