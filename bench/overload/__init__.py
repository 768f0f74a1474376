"""`make overload`: what becomes of a server that is asked for several times what it can do."""
