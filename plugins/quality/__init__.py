"""Quality estimates: the probability that a reader accepts a translation."""
