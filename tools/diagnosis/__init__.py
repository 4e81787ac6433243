"""The checks of `doctor`, one module each."""
