"""Sampling: tokens drawn at random."""
