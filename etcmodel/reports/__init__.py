"""A page of what a run learned and answered, for every task, in one HTML file."""
