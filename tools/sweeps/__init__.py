"""The parts of `tools.sweep`: many runs of a training program, to find the best options."""
