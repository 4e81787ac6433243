"""Invented data sets, and what the demos show of them."""
