"""Generated data that depend on one ingredient of ETC, and the runs that ablate it."""
