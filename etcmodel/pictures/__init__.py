"""The style of all pictures: colors, axes, and lines with labels at their ends."""
