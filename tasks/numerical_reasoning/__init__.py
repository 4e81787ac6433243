"""Numerical reasoning: a number that a passage does not have is made of those that it has."""
