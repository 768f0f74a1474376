"""The words of a text and of its translation, aligned by the attention of the model."""
