"""Generated data where one ingredient of ETC decides, and the runs that take it away."""
