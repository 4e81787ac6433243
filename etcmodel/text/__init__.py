"""Text: tokenization, vocabularies, alignment of tokens with text, sentence splitting."""
