"""HTTP: the port, connections that hold nobody up, and each protocol as a file that converts."""
