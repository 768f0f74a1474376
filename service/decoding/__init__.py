"""What is decoded next, and with what: decisions in plain Python, with no thread, clock or session of their own."""
