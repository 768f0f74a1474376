"""Word alignment between a text and its translation, from the attention of the model."""
