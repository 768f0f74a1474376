"""The Transformer in PyTorch: definition, tokenizer training, training, evaluation, checkpoints."""
