"""Tensor functions without variables: attention, dropout, normalization."""
