"""Texts of several tests."""

# Takes seconds to translate.
LONG = " ".join(f"Tom bought {number} books, and then he read them all." for number in range(1000, 4000))
