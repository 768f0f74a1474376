"""Bulk translation of files, row by row into other files, each row exactly once."""

from typing import Final

from dragoman.cli import Command

COMMAND: Final = Command("plugins.bulk.command:bulk", "bulk", "translate a column of files, each row exactly once")
