"""The tasks: one folder for each data set, with the same modules in each."""
