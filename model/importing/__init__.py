"""Models that others have trained: read, checked, and written as a checkpoint of this project."""
