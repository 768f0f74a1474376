"""What a checkpoint consists of: numbers, position encodings, and where its attention looks."""
