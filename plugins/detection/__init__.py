"""Language detection, by a classifier."""
