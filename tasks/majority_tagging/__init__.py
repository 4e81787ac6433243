"""Majority tagging: each number of a sequence is tagged with the more frequent one of its pair."""
