"""Keras layers of ETC."""
