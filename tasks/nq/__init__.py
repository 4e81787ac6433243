"""Natural Questions: long, short and yes/no answers from whole Wikipedia pages."""
