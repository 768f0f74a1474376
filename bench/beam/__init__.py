"""Beam search beside CTranslate2, how fast and how good: `python -m bench.beam`."""
