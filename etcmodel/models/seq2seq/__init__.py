"""What models with an encoder and a decoder have in common."""
