"""Several servers on the same ports, and their shared parts: a supervisor, the weights, a page of metrics."""
