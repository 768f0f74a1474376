"""Models by name: a missing model is imported into the user's cache folder, by a separate process."""
