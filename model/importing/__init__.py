"""The import of models trained elsewhere: they are read, checked, and written as checkpoints of this project."""
