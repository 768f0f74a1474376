"""The languages of texts, by a classifier."""
