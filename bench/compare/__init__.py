"""Dragoman beside other programs that run the same weights: `dragoman bench compare`."""
