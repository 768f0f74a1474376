"""Other programs that run the same weights, for comparison: converters, and how each is driven."""
