"""Several servers on the same ports, and what they share: a supervisor, the weights, a page of metrics."""
