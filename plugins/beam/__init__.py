"""Beam search, and the alternatives that it finds: the best translations of a text."""
