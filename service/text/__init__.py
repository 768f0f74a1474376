"""Texts to segments and back: sentences, HTML, and their translations put together."""
