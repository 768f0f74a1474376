"""Models by their names: what is not there yet is imported into the user's cache folder, by a process of its own."""
