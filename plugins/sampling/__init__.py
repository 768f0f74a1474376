"""Tokens that are drawn."""
