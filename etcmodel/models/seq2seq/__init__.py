"""Shared parts of models with an encoder and a decoder."""
