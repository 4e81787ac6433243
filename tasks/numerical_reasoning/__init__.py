"""Numerical reasoning: answers are computed from the numbers in a passage."""
