"""What a model consists of: its weights, position encodings, and where its attention looks; numbers and pictures."""
