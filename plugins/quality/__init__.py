"""How probable it is that a reader accepts a translation."""
