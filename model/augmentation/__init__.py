"""What real input looks like, made of clean pairs: pure functions of a pair and a generator of random numbers."""
