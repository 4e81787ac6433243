"""How all pictures look: colors, axes, and lines that are labeled where they end."""
