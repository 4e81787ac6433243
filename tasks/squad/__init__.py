"""SQuAD: questions about a paragraph, whose answers are parts of it, or that have none."""
