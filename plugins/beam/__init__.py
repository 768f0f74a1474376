"""Beam search, and alternatives: the best translations of a text."""
