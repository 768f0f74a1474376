"""What is told of calls and models: metrics, log, traces."""
