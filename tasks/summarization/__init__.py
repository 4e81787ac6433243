"""Summarization of long documents by models with an encoder and a decoder."""
