"""The parts of `benchmark`, which runs one process for each model."""
