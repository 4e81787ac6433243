"""Classification of long texts: one label, several labels, or a number, of one or two texts."""
