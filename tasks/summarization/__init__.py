"""Summarization of long documents with encoder-decoder models."""
