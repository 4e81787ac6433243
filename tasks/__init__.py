"""One folder a dataset, the same rooms in each."""
