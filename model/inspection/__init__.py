"""The inspection of a model: its weights, its position encodings and its attention, as numbers and pictures."""
