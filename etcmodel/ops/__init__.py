"""Tensor functions without variables: attention, dropout, blocks."""
