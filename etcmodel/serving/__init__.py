"""Export to SavedModel, and prediction from one."""
