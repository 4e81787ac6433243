"""What `benchmark` runs: one process for each model."""
