"""Glossaries and placeholders: terms are found in texts, and their translations are enforced."""
