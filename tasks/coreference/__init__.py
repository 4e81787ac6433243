"""Coreference: which mentions of a document are of the same thing."""
