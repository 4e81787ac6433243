"""The ETC model, its inputs and its tokenizers."""
