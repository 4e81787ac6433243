"""Classification of one or two long texts: one label, several labels, or a number."""
