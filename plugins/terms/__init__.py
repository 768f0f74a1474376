"""Glossaries, and placeholders that stay as they are: found in texts, and seen into their translations."""
