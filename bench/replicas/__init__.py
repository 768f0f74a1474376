"""What one and two replicas cost: `python -m bench.replicas`."""
