"""Clean pairs made similar to real input: pure functions of a pair and a random number generator."""
